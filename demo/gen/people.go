package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

type user struct {
	sysID, login, first, last string
	at                        location
}

type group struct {
	name    string
	members []user
}

// Ids that the imitated vendor's documents and public client tests use.
const (
	adminID     = "6816f79cc0a8016401c5a33be04be441"
	abelID      = "62826bf03710200044e0bfc8bcbe5df1"
	adminRoleID = "2831a114c611228501d4ea6c309d626d"
)

// The people with a login. Their password is their login. Everyone else has none, because each hash costs the first start
// some twenty milliseconds.
var known = []struct{ login, first, last, title, role string }{
	{"admin", "System", "Administrator", "System Administrator", "admin"},
	{"abel.tuter", "Abel", "Tuter", "Payroll Clerk", "ess"},
	{"joe.employee", "Joe", "Employee", "Sales Representative", "ess"},
	{"jill.workman", "Jill", "Workman", "Controller", "ess"},
	{"beth.anglin", "Beth", "Anglin", "Service Desk Agent", "itil"},
	{"david.loo", "David", "Loo", "Network Engineer", "itil"},
	{"don.goodliffe", "Don", "Goodliffe", "Database Administrator", "itil"},
	{"bow.ruggeri", "Bow", "Ruggeri", "Systems Engineer", "itil"},
	{"user.admin", "Ursula", "Admin", "Identity Manager", "user_admin"},
	{"import.agent", "Import", "Agent", "Integration account", "import_set_loader"},
}

const (
	people = 200 // users in all
	agents = 36  // of whom so many work on tasks
)

func (w *world) people() []*sheet {
	d := newDice("sys_user")
	users := newSheet("sys_user", "user_name", "name", "first_name", "last_name", "email", "employee_number", "title", "phone", "manager",
		"department", "company", "location", "cost_center", "vip", "time_zone", "preferred_language", "user_password", "active", "locked_out",
		"web_service_access_only", "last_login_time")
	granted := newSheet("sys_user_has_role", "user", "role")
	roles := newSheet("sys_user_role", "name", "description", "elevated_privilege")

	roleID := map[string]string{"admin": adminRoleID}
	for _, line := range []string{
		"admin|May do everything|true", "itil|Works on incidents, problems and changes|false", "ess|Opens incidents and sees their own|false",
		"user_admin|Manages users, groups, departments and locations|false", "import_set_loader|Loads staging tables|false",
		"approver_user|Approves requests and changes|false", "epm_user|Keeps business partners, products and sales orders|false", "hr_user|Hires people|false",
	} {
		f := strings.Split(line, "|")
		if roleID[f[0]] == "" {
			roleID[f[0]] = id("sys_user_role", f[0])
		}
		roles.add(roleID[f[0]], f[0], f[1], f[2])
	}

	heads := make(map[string]string) // department → the first of its people, who manages the rest
	taken := make(map[string]bool)
	for i := range people {
		var u user
		var title, role, password, department string
		switch {
		case i < len(known):
			k := known[i]
			u = user{login: k.login, first: k.first, last: k.last}
			title, role, password = k.title, k.role, k.login
			department = "IT"
			if role == "ess" {
				department = map[string]string{"Payroll Clerk": "HR", "Controller": "Finance", "Sales Representative": "Sales"}[title]
			}
		default:
			for u.login == "" || taken[u.login] {
				u.first, u.last = pick(d, firstNames), pick(d, lastNames)
				u.login = strings.ToLower(u.first + "." + u.last)
			}
			role, department = "ess", pick(d, w.departments)
			if len(w.agents) < agents {
				role, department = "itil", "IT"
			}
			title = pick(d, titles[department])
		}
		taken[u.login] = true
		u.sysID = map[string]string{"admin": adminID, "abel.tuter": abelID}[u.login]
		if u.sysID == "" {
			u.sysID = id("sys_user", u.login)
		}
		u.at = pick(d, w.locations)
		if password != "" {
			u.at = w.locations[i%3] // offices where English is spoken
		}

		manager := heads[department]
		if manager == "" && u.login != "admin" {
			heads[department] = u.sysID
		}
		language := "en"
		switch u.at.country {
		case "Germany":
			language = "de"
		case "France":
			language = "fr"
		case "Japan":
			language = "ja"
		}
		lastLogin := ""
		if d.chance(70) {
			lastLogin = stamp(today.Add(-time.Duration(d.n(60*24*60)) * time.Minute))
		}
		active := password != "" || !d.chance(3)
		users.add(u.sysID, u.login, u.first+" "+u.last, u.first, u.last, u.login+"@example.com", fmt.Sprintf("E%05d", 10001+i), title,
			fmt.Sprintf("555-%04d", 100+i*7), manager, id("cmn_department", department), id("core_company", home), id("cmn_location", u.at.city),
			id("cmn_cost_center", department), strconv.FormatBool(password == "" && d.chance(4)), u.at.zone, language, password,
			strconv.FormatBool(active), "false", strconv.FormatBool(role == "import_set_loader"), lastLogin)
		granted.add(id("sys_user_has_role", u.login+" "+role), u.sysID, roleID[role])
		if u.login == "joe.employee" { // he sells
			granted.add(id("sys_user_has_role", u.login+" epm_user"), u.sysID, roleID["epm_user"])
		}
		if u.login == "jill.workman" { // she hires
			granted.add(id("sys_user_has_role", u.login+" hr_user"), u.sysID, roleID["hr_user"])
		}

		if role == "itil" && active {
			w.agents = append(w.agents, u)
		}
		if role == "ess" && active {
			w.users = append(w.users, u)
		}
	}
	return append([]*sheet{users, roles, granted}, w.grouping(roleID)...)
}

func (w *world) grouping(roleID map[string]string) []*sheet {
	d := newDice("sys_user_group")
	groups := newSheet("sys_user_group", "name", "description", "manager", "parent", "email", "active", "default_assignee")
	members := newSheet("sys_user_grmember", "user", "group")
	granted := newSheet("sys_group_has_role", "group", "role", "inherits")

	next := 0
	for _, line := range []string{
		"IT||Everyone who runs the company's systems", "Service Desk|IT|Takes every call first", "Hardware|IT|Laptops, desktops and what is plugged into them",
		"Software|IT|Desktop and office applications", "Network|IT|Lines, switches, wireless and VPN", "Database|IT|Oracle, SQL Server and DB2",
		"Operating Systems|IT|Linux and Windows servers", "Cloud Operations|IT|What runs in other people's buildings", "Security|IT|Looks for trouble",
		"Application Development|IT|Our own applications", "Problem Analysts|IT|Find the cause behind the incidents", "Change Management|IT|Schedules and reviews changes",
		"CAB Approval|Change Management|Approves changes", "Field Services|IT|Comes to your desk",
	} {
		f := strings.Split(line, "|")
		name, parent, what := f[0], f[1], f[2]
		g := group{name: name}
		size := 4 + d.n(3)
		for range size {
			g.members = append(g.members, w.agents[next%len(w.agents)])
			next++
		}
		if name == "Service Desk" { // Beth is the first agent of the list, and of the desk
			g.members = prependOnce(g.members, w.agents[0])
		}
		above := ""
		if parent != "" {
			above = id("sys_user_group", parent)
		}
		mail := strings.ToLower(strings.ReplaceAll(name, " ", ".")) + "@example.com"
		groups.add(id("sys_user_group", name), name, what, g.members[0].sysID, above, mail, "true", g.members[1].sysID)
		for _, u := range g.members {
			members.add(id("sys_user_grmember", name+" "+u.login), u.sysID, id("sys_user_group", name))
		}
		granted.add(id("sys_group_has_role", name+" itil"), id("sys_user_group", name), roleID["itil"], "true")
		if name == "CAB Approval" {
			granted.add(id("sys_group_has_role", name+" approver_user"), id("sys_user_group", name), roleID["approver_user"], "true")
		}
		w.groups = append(w.groups, g)
	}
	return []*sheet{groups, members, granted}
}

func prependOnce(list []user, u user) []user {
	for _, m := range list {
		if m.sysID == u.sysID {
			return list
		}
	}
	return append([]user{u}, list...)
}

// group returns the group of that name, which must exist.
func (w *world) group(name string) group {
	for _, g := range w.groups {
		if g.name == name {
			return g
		}
	}
	panic("no group " + name)
}

var firstNames = strings.Fields(`Alice Amir Ana Andre Anja Anton Astrid Ben Bianca Boris Carla Carmen Cedric Chen Clara Dana Daniel Deepa Diego Elena Elif Emil
	Emma Erik Eva Fatima Felix Fiona Gina Gustav Hana Hannah Hiro Ida Igor Ines Ingrid Isaac Ivan Jana Jonas Julia Kai Karim Kate Kenji Klara Lars Laura Leila
	Leo Lin Lucas Lucia Maja Marco Maria Mei Milan Mira Nadia Nico Nina Noah Nora Olga Omar Oscar Paolo Petra Priya Rafael Ravi Rosa Ruben Sara Simon Sofia Sven
	Tara Theo Tim Tomas Uma Vera Viktor Wei Yara Yuki Zoe`)

var lastNames = strings.Fields(`Abbott Adler Ahmed Alvarez Andersson Bauer Becker Bennett Berg Bianchi Blake Brandt Braun Carter Castro Chandra Cohen Costa Cruz
	Dahl Dietrich Dubois Eriksen Evans Farrell Fischer Fontaine Foster Garcia Gomez Gruber Haas Hansen Hayashi Hoffmann Hughes Ibrahim Ito Jansen Jensen Kaplan
	Keller Khan Kim Klein Kovacs Krause Kumar Lang Larsen Laurent Lindgren Lopez Marino Martin Meyer Moreau Moretti Mueller Nakamura Novak Okafor Olsen Ortiz
	Park Patel Pereira Petrov Quinn Ramos Reyes Rossi Ruiz Santos Sato Schmidt Silva Singh Sommer Tanaka Torres Vargas Vogel Wagner Walsh Weber Winter Wolf Wong
	Yamada Zimmer`)

var titles = map[string][]string{
	"IT":                 {"Service Desk Agent", "Systems Engineer", "Network Engineer", "Database Administrator", "IT Manager"},
	"Development":        {"Software Engineer", "Senior Software Engineer", "Test Engineer", "Architect"},
	"Finance":            {"Accountant", "Controller", "Financial Analyst"},
	"HR":                 {"Recruiter", "HR Partner", "Payroll Clerk"},
	"Sales":              {"Sales Representative", "Account Manager", "Sales Engineer"},
	"Customer Support":   {"Support Engineer", "Support Manager"},
	"Marketing":          {"Marketing Manager", "Writer", "Designer"},
	"Legal":              {"Counsel", "Paralegal"},
	"Operations":         {"Plant Manager", "Planner", "Buyer", "Shift Supervisor"},
	"Product Management": {"Product Manager", "Product Owner"},
}

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// priority is the matrix of incident.yaml and problem.yaml: impact × urgency.
var priority = [3][3]int{{1, 2, 3}, {2, 3, 4}, {3, 4, 5}}

// complaint is what people call about. Several words in braces stand for one of them.
type complaint struct {
	category, subcategory, group string
	about                        string // computer, server or a service's name
	texts                        []string
}

var complaints = []complaint{
	{"inquiry", "antivirus", "Service Desk", "computer", []string{"Virus scanner reports {a Trojan|an infected attachment|out of date signatures}", "Is this mail {phishing|from our bank}?"}},
	{"inquiry", "email", "Service Desk", "Email", []string{"How do I {share a calendar|set an out of office note|recover a deleted folder}?", "Need a {shared mailbox|distribution list} for the new team"}},
	{"inquiry", "internal application", "Service Desk", "Intranet", []string{"Where is the {travel expense|vacation request|purchase order} form?", "Password reset for the {intranet|time sheet} application"}},
	{"software", "email", "Software", "Email", []string{"Outlook {hangs when starting|does not send|asks for the password again and again}", "Mailbox is {full|not shown on the phone}"}},
	{"software", "os", "Software", "computer", []string{"{Update|Upgrade} {fails with an error|hangs at 34 percent}", "Computer restarts {by itself|during presentations}", "Blue screen after {docking|waking up}"}},
	{"hardware", "cpu", "Hardware", "computer", []string{"Fan is loud and the computer {is hot|slows down}"}},
	{"hardware", "disk", "Hardware", "computer", []string{"Disk is {full|making noises}", "Drive {E:|D:} has disappeared"}},
	{"hardware", "keyboard", "Hardware", "computer", []string{"{Space bar|Letter E|Return key} is stuck", "Coffee in the keyboard"}},
	{"hardware", "memory", "Hardware", "computer", []string{"Needs more memory for {large spreadsheets|virtual machines}"}},
	{"hardware", "monitor", "Hardware", "computer", []string{"Second monitor {flickers|is not found|stays black}"}},
	{"hardware", "mouse", "Hardware", "computer", []string{"Mouse {jumps|does not connect|needs a battery}"}},
	{"network", "dhcp", "Network", "server", []string{"No address in meeting room {3|7|12}"}},
	{"network", "dns", "Network", "server", []string{"Cannot resolve {the build server|the supplier portal}"}},
	{"network", "ip address", "Network", "server", []string{"Two machines with one address on floor {1|2|4}"}},
	{"network", "vpn", "Network", "Remote Access", []string{"VPN {drops every ten minutes|refuses my token|is slow from home}"}},
	{"network", "wireless", "Network", "Wireless", []string{"No Wi-Fi in the {canteen|warehouse|lobby}", "Guest Wi-Fi {has no internet|asks for a voucher}"}},
	{"database", "db2", "Database", "server", []string{"DB2 {log full|backup failed|deadlocks at month end}"}},
	{"database", "sql server", "Database", "server", []string{"SQL Server {job failed|is slow since the patch|tempdb is full}"}},
	{"database", "oracle", "Database", "ERP", []string{"Oracle {listener is down|tablespace is nearly full|reports time out}", "ERP {is slow|shows an ORA-01555}"}},
}

// say chooses one of each braced list.
func say(d dice, text string) string {
	for {
		open := strings.IndexByte(text, '{')
		if open < 0 {
			return text
		}
		end := open + strings.IndexByte(text[open:], '}')
		text = text[:open] + pick(d, strings.Split(text[open+1:end], "|")) + text[end+1:]
	}
}

func (w *world) subject(d dice, about string, caller user) item {
	switch about {
	case "server":
		return pick(d, w.servers)
	case "computer":
		for _, c := range w.computers {
			if c.owner.sysID == caller.sysID {
				return c
			}
		}
		return item{}
	}
	for _, s := range w.services {
		if s.name == about {
			return s
		}
	}
	panic("no service " + about)
}

func (w *world) work() []*sheet {
	problems, open := w.problems()
	changes, tasks := w.changes()
	return []*sheet{w.incidents(open), problems, changes, tasks}
}

func (w *world) incidents(problems []string) *sheet {
	d := newDice("incident")
	s := newSheet("incident", "number", "state", "incident_state", "active", "short_description", "description", "caller_id", "opened_by", "opened_at", "contact_type",
		"category", "subcategory", "cmdb_ci", "business_service", "impact", "urgency", "priority", "severity", "assignment_group", "assigned_to", "reassignment_count",
		"company", "location", "hold_reason", "problem_id", "close_code", "close_notes", "resolved_at", "resolved_by", "closed_at", "closed_by", "reopen_count")
	const count = 600
	for i := range count {
		c := pick(d, complaints)
		caller := pick(d, w.users)
		if i%60 == 0 {
			caller = w.users[0] // Abel has enough to see
		}
		by := pick(d, w.group("Service Desk").members)
		channel := []string{"phone", "email", "self-service", "chat", "virtual_agent", "walk-in"}[d.weighted(35, 20, 30, 8, 4, 3)]
		if channel == "self-service" || channel == "virtual_agent" {
			by = caller
		}
		// The older an incident, the likelier it is over: numbers follow time.
		age := time.Duration(count-i) * (180 * 24 * time.Hour / count)
		opened := today.Add(-age + time.Duration(d.n(5*60))*time.Minute)
		if opened.After(today) {
			opened = today.Add(-time.Duration(d.n(60)) * time.Minute)
		}
		state := []int{1, 2, 3, 6, 7, 8}[d.weighted(2, 3, 1, 4, 85, 5)]
		if i > count*8/10 {
			state = []int{1, 2, 3, 6, 7, 8}[d.weighted(25, 35, 12, 20, 5, 3)]
		}
		impact, urgency := 1+d.weighted(6, 24, 70), 1+d.weighted(10, 30, 60)

		g := w.group(c.group)
		agent, hold, problem, code, notes := "", "", "", "", ""
		var resolved, closed time.Time
		resolver, closer := "", ""
		if state != 1 {
			agent = pick(d, g.members).sysID
		}
		if state == 3 {
			hold = pick(d, []string{"1", "3", "4", "5"})
		}
		if d.chance(6) || hold == "3" {
			problem = pick(d, problems)
		}
		if state == 6 || state == 7 {
			resolved, resolver = opened.Add(time.Duration(15+d.n(20*60))*time.Minute), agent
			if resolved.After(today) {
				resolved = today
			}
			code = pick(d, []string{"Duplicate", "Resolved by caller", "Resolved by change", "Solution provided", "Solution provided", "Workaround provided", "User error"})
			if problem != "" {
				code = pick(d, []string{"Known error", "Resolved by problem"})
			}
			notes = closeNotes[code]
		}
		if state == 7 {
			closed, closer = resolved.Add(72*time.Hour), adminID
		}
		if state == 8 {
			closed, closer = opened.Add(time.Hour), agent
		}
		if closed.After(today) {
			closed = today
		}

		number := fmt.Sprintf("INC%07d", i+1)
		text := say(d, pick(d, c.texts))
		ci, service := w.subject(d, c.about, caller), ""
		if slices.ContainsFunc(w.services, func(s item) bool { return s.sysID == ci.sysID }) {
			service = ci.sysID
		}
		about := "."
		if ci.name != "" {
			about = " (" + ci.name + ")."
		}
		description := fmt.Sprintf("%s %s reports from %s: %s%s", caller.first, caller.last, caller.at.city, text, about)
		s.add(id("task", number), number, strconv.Itoa(state), strconv.Itoa(state), strconv.FormatBool(state < 7), text, description, caller.sysID, by.sysID, stamp(opened),
			channel, c.category, c.subcategory, ci.sysID, service, strconv.Itoa(impact), strconv.Itoa(urgency), strconv.Itoa(priority[impact-1][urgency-1]),
			strconv.Itoa(1+d.weighted(5, 15, 80)), id("sys_user_group", c.group), agent, strconv.Itoa(d.weighted(80, 15, 5)), id("core_company", home),
			id("cmn_location", caller.at.city), hold, problem, code, notes, stamp(resolved), resolver, stamp(closed), closer, strconv.Itoa(d.weighted(95, 5)))
	}
	return s
}

var closeNotes = map[string]string{
	"Duplicate":           "The same as an earlier incident; see there.",
	"Known error":         "A known error; the caller has the workaround.",
	"Resolved by caller":  "The caller found it in the meantime.",
	"Resolved by change":  "Gone with last night's change.",
	"Resolved by problem": "Gone with the fix of the problem behind it.",
	"Solution provided":   "Repaired, and tried together with the caller.",
	"Workaround provided": "The caller can work; the cause is known.",
	"User error":          "Shown how it is meant to be done.",
}

func (w *world) problems() (*sheet, []string) {
	d := newDice("problem")
	s := newSheet("problem", "number", "state", "problem_state", "active", "short_description", "opened_by", "opened_at", "category", "cmdb_ci", "impact", "urgency",
		"priority", "assignment_group", "assigned_to", "known_error", "workaround", "cause_notes", "resolution_code", "resolved_at", "resolved_by", "closed_at", "closed_by")
	var ids []string
	g := w.group("Problem Analysts")
	for i := range 50 {
		c := pick(d, complaints[3:]) // an inquiry is nobody's problem
		number := fmt.Sprintf("PRB%07d", i+1)
		state := []int{101, 102, 103, 104, 106, 107}[d.weighted(15, 15, 20, 15, 15, 20)]
		opened := today.Add(-time.Duration(d.n(180*24*60)) * time.Minute)
		impact, urgency := 1+d.weighted(10, 40, 50), 1+d.weighted(15, 40, 45)
		agent := pick(d, g.members).sysID
		assigned, workaround, cause, code, resolver, closer := agent, "", "", "", "", ""
		var resolved, closed time.Time
		if state == 101 {
			assigned = ""
		}
		known := state >= 104
		if known {
			workaround, cause = "Restart and try again.", "Found in the logs and repeated in test."
		}
		if state >= 106 {
			code, resolver, resolved = pick(d, []string{"fix_applied", "fix_applied", "risk_accepted"}), agent, earlier(opened.AddDate(0, 0, 5+d.n(20)), today)
		}
		if state == 107 {
			closer, closed = agent, earlier(resolved.AddDate(0, 0, 3), today)
		}
		s.add(id("task", number), number, strconv.Itoa(state), strconv.Itoa(state), strconv.FormatBool(state != 107), "Again and again: "+say(d, pick(d, c.texts)),
			pick(d, w.agents).sysID, stamp(opened), c.category, pick(d, w.servers).sysID, strconv.Itoa(impact), strconv.Itoa(urgency),
			strconv.Itoa(priority[impact-1][urgency-1]), id("sys_user_group", g.name), assigned, strconv.FormatBool(known), workaround, cause, code, stamp(resolved), resolver,
			stamp(closed), closer)
		ids = append(ids, id("task", number))
	}
	return s, ids
}

func (w *world) changes() (*sheet, *sheet) {
	d := newDice("change_request")
	changes := newSheet("change_request", "number", "state", "active", "type", "category", "risk", "impact", "urgency", "priority", "short_description", "justification",
		"implementation_plan", "backout_plan", "test_plan", "requested_by", "opened_by", "opened_at", "start_date", "end_date", "cmdb_ci", "assignment_group", "assigned_to",
		"approval", "cab_required", "close_code", "close_notes", "closed_at", "closed_by")
	tasks := newSheet("change_task", "number", "state", "active", "change_request", "parent", "change_task_type", "short_description", "opened_by", "opened_at", "assignment_group",
		"assigned_to", "planned_start_date", "planned_end_date", "close_code", "closed_at", "closed_by")
	for i := range 90 {
		number := fmt.Sprintf("CHG%07d", i+1)
		server := pick(d, w.servers)
		g := w.group(pick(d, []string{"Operating Systems", "Database", "Network", "Cloud Operations"}))
		kind := []string{"normal", "standard", "emergency"}[d.weighted(60, 30, 10)]
		state := []int{-5, -4, -3, -2, -1, 0, 3, 4}[d.weighted(10, 8, 8, 12, 6, 6, 45, 5)]
		opened := today.Add(-time.Duration(24*60+d.n(150*24*60)) * time.Minute)
		start := opened.AddDate(0, 0, 3+d.n(14)).Truncate(time.Hour)
		over := state == 3 || state == 4
		if state < 0 && state > -5 {
			start = today.AddDate(0, 0, d.n(20)).Truncate(time.Hour)
		}
		end := start.Add(time.Duration(1+d.n(5)) * time.Hour)
		agent, by := pick(d, g.members).sysID, pick(d, w.agents).sysID
		approval, code, notes, closed, closer := "not requested", "", "", time.Time{}, ""
		switch {
		case state >= -2 && state != 4:
			approval = "approved"
		case state == -4 || state == -3:
			approval = "requested"
		}
		if state == 3 {
			code, notes = []string{"successful", "successful_issues", "unsuccessful"}[d.weighted(85, 10, 5)], "Done as planned."
		}
		if over {
			closed, closer = earlier(end, today), agent
		}
		what := say(d, "{Patch|Upgrade|Move|Restart|Enlarge the disk of|Renew the certificate of} "+server.name)
		changes.add(id("task", number), number, strconv.Itoa(state), strconv.FormatBool(!over), kind, pick(d, []string{"Hardware", "Software", "Network", "Service", "Other"}),
			strconv.Itoa(2+d.weighted(10, 30, 60)), "3", "3", "4", what, "Keeps "+server.name+" supported.", "Drain, change, check, put back.", "Restore the snapshot.",
			"Watch the monitors for an hour.", by, by, stamp(opened), stamp(start), stamp(end), server.sysID, id("sys_user_group", g.name), agent, approval,
			strconv.FormatBool(kind == "normal"), code, notes, stamp(closed), closer)
		for k, step := range []string{"implementation", "testing"} {
			taskNumber := fmt.Sprintf("CTASK%07d", i*2+k+1)
			taskState, taskCode := "1", ""
			switch state {
			case -1:
				taskState = "2"
			case 0, 3:
				taskState, taskCode = "3", "successful"
			case 4:
				taskState = "4"
			}
			done, doneBy := closed, closer
			if state == 0 {
				done, doneBy = earlier(end, today), agent
			}
			verb := map[string]string{"implementation": "Carry out: ", "testing": "Check: "}[step]
			tasks.add(id("task", taskNumber), taskNumber, taskState, strconv.FormatBool(taskState < "3"), id("task", number), id("task", number), step, verb+what, by,
				stamp(opened), id("sys_user_group", g.name), agent, stamp(start), stamp(end), taskCode, stamp(done), doneBy)
		}
	}
	return changes, tasks
}

func earlier(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}

// settings makes the records that steer: who gets which incident, and the properties that clients ask for.
func (w *world) settings() []*sheet {
	rules := newSheet("assignment_rule", "name", "category", "subcategory", "cmdb_ci", "order", "assignment_group")
	for _, line := range []string{"hardware||Hardware", "software||Software", "network||Network", "database||Database", "software|os|Operating Systems"} {
		f := strings.Split(line, "|")
		name := strings.TrimSpace(f[0] + " " + f[1])
		rules.add(id("assignment_rule", name), name, f[0], f[1], "", "100", id("sys_user_group", f[2]))
	}
	rules.add(id("assignment_rule", "finance laptop"), "finance laptop", "", "", financeLaptop, "50", id("sys_user_group", "Field Services"))

	properties := newSheet("sys_properties", "name", "value", "description", "type")
	for _, line := range []string{
		"instance_name|weir|The name of this server|string", "glide.product.name|weir|The name of the product|string",
		"glide.sys.date_format|yyyy-MM-dd|How dates are shown|string", "glide.sys.time_format|HH:mm:ss|How times are shown|string",
		"glide.sys.default.tz|GMT|The time zone of users who have none|string", "glide.sys.language|en|The language of users who have none|string",
	} {
		f := strings.Split(line, "|")
		properties.add(id("sys_properties", f[0]), f...)
	}
	return []*sheet{rules, properties}
}

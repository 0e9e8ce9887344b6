package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// item is a configuration item that work can be about.
type item struct {
	sysID, name string
	owner       user
}

// financeLaptop is the item that the imitated vendor's article opens an incident for.
const financeLaptop = "b4fd7c8437201000deeabfc8bcbe5dc1"

// maker|model|class|cost, and for a computer its processor, memory in MB and disk in GB
const models = `
Apple|MacBook Pro 15"|cmdb_ci_computer|2499.00|Apple M3 Pro|18432|512
Apple|MacBook Air 13"|cmdb_ci_computer|1199.00|Apple M3|16384|256
Dell Inc.|Latitude 7450|cmdb_ci_computer|1649.00|Intel Core Ultra 7|16384|512
Dell Inc.|OptiPlex 7020|cmdb_ci_computer|949.00|Intel Core i5|16384|512
HP|EliteBook 840 G11|cmdb_ci_computer|1520.00|Intel Core Ultra 5|16384|512
Lenovo|ThinkPad X1 Carbon|cmdb_ci_computer|1899.00|Intel Core Ultra 7|32768|1000
Dell Inc.|PowerEdge R760|cmdb_ci_server|9800.00|Intel Xeon Gold|262144|7680
HP|ProLiant DL380 Gen11|cmdb_ci_server|10400.00|Intel Xeon Gold|524288|7680
Lenovo|ThinkSystem SR650|cmdb_ci_server|8900.00|Intel Xeon Silver|131072|3840
VMware|Virtual Machine|cmdb_ci_server|0.00|Virtual CPU|32768|200
Cisco Systems|Catalyst 9300|cmdb_ci_hardware|6200.00
Cisco Systems|Catalyst 9120 Access Point|cmdb_ci_hardware|870.00
Juniper Networks|SRX345 Firewall|cmdb_ci_hardware|3400.00
HP|LaserJet Enterprise M612|cmdb_ci_hardware|1100.00
`

type model struct {
	maker, name, class, cost string
	cpu, ram, disk           string
}

func (m model) id() string { return id("cmdb_model", m.maker+" "+m.name) }

func (w *world) things() []*sheet {
	d := newDice("cmdb_ci")
	catalogue := newSheet("cmdb_model", "name", "display_name", "manufacturer", "cmdb_ci_class", "cost")
	byClass := make(map[string][]model)
	for _, line := range strings.Split(strings.TrimSpace(models), "\n") {
		f := strings.Split(line, "|")
		m := model{maker: f[0], name: f[1], class: f[2], cost: f[3]}
		if len(f) > 4 {
			m.cpu, m.ram, m.disk = f[4], f[5], f[6]
		}
		byClass[m.class] = append(byClass[m.class], m)
		catalogue.add(m.id(), m.name, m.maker+" "+m.name, id("core_company", m.maker), m.class, m.cost)
	}

	computers, assets := w.laptops(d, byClass["cmdb_ci_computer"])
	servers := w.machineRoom(d, byClass["cmdb_ci_server"])
	hardware, gear := w.networkGear(d, byClass["cmdb_ci_hardware"])
	services, offerings, relations := w.offered(d, gear)
	return []*sheet{catalogue, computers, assets, servers, hardware, services, offerings, relations}
}

// laptops gives most people a computer, and each computer its asset.
func (w *world) laptops(d dice, from []model) (*sheet, *sheet) {
	computers := newSheet("cmdb_ci_computer", "name", "asset_tag", "serial_number", "model_id", "manufacturer", "asset", "assigned_to", "owned_by",
		"location", "company", "department", "cost", "environment", "discovery_source", "first_discovered", "last_discovered", "ip_address", "mac_address",
		"os", "os_version", "cpu_count", "cpu_type", "ram", "disk_space", "form_factor", "warranty_expiration")
	assets := newSheet("alm_asset", "display_name", "asset_tag", "serial_number", "model", "ci", "assigned_to", "company", "location", "cost",
		"purchase_date", "warranty_expiration")
	for i := range 120 {
		u := w.users[i%len(w.users)]
		m := pick(d, from)
		name := fmt.Sprintf("%s-%04d", strings.ToUpper(u.last), 1001+i)
		sysID := id("cmdb_ci", name)
		if i == 0 { // Abel's, who is the first user
			m, name, sysID = from[0], "FINANCE-MBP-15", financeLaptop
		}
		system, version := "Windows 11", "23H2"
		if m.maker == "Apple" {
			system, version = "macOS", "15.1"
		}
		form := "Laptop"
		if strings.HasPrefix(m.name, "OptiPlex") {
			form = "Desktop"
		}
		bought := today.AddDate(0, 0, -30-d.n(1200))
		seen := today.Add(-time.Duration(d.n(7*24*60)) * time.Minute)
		tag, serial := fmt.Sprintf("P%06d", 1000+i), serialNumber(d)
		asset := id("alm_asset", tag)
		computers.add(sysID, name, tag, serial, m.id(), id("core_company", m.maker), asset, u.sysID, u.sysID, id("cmn_location", u.at.city),
			id("core_company", home), "", m.cost, "Production", "Discovery", stamp(bought.AddDate(0, 0, 7)), stamp(seen),
			fmt.Sprintf("10.20.%d.%d", i/200, 10+i%200), mac(d), system, version, "1", m.cpu, m.ram, m.disk, form, date(bought.AddDate(3, 0, 0)))
		assets.add(asset, tag+" - "+m.maker+" "+m.name, tag, serial, m.id(), sysID, u.sysID, id("core_company", home), id("cmn_location", u.at.city), m.cost,
			date(bought), date(bought.AddDate(3, 0, 0)))
		w.computers = append(w.computers, item{sysID: sysID, name: name, owner: u})
	}
	return computers, assets
}

func (w *world) machineRoom(d dice, from []model) *sheet {
	servers := newSheet("cmdb_ci_server", "name", "serial_number", "short_description", "model_id", "manufacturer", "operational_status", "install_status",
		"managed_by", "support_group", "location", "company", "cost", "environment", "discovery_source", "last_discovered", "ip_address", "mac_address", "fqdn",
		"dns_domain", "monitor", "host_name", "os", "os_version", "cpu_count", "cpu_core_count", "cpu_type", "ram", "disk_space", "form_factor", "virtual",
		"classification", "firewall_status")
	sites := []string{"Chicago", "London", "Tokyo"}
	for i := range 60 {
		purpose := pick(d, []string{"app", "web", "db", "file", "mail", "batch"})
		environment := []string{"Production", "Test", "Development"}[d.weighted(6, 2, 2)]
		site := sites[i%len(sites)]
		name := fmt.Sprintf("%s-%s-%s-%02d", strings.ToLower(site[:3]), strings.ToLower(environment[:4]), purpose, i+1)
		m := pick(d, from)
		support, system, version := "Operating Systems", "Linux Red Hat", "9.4"
		if d.chance(35) {
			system, version = "Windows Server", "2022"
		}
		if purpose == "db" {
			support = "Database"
		}
		g := w.group(support)
		status, installed := "1", "1"
		switch d.weighted(90, 6, 4) {
		case 1:
			status, installed = "3", "3"
		case 2:
			status, installed = "6", "7"
		}
		wall := "intranet"
		if purpose == "web" {
			wall = "dmz"
		}
		cores := strconv.Itoa(8 << d.n(4))
		servers.add(id("cmdb_ci", name), name, serialNumber(d), "A "+purpose+" server in "+site, m.id(), id("core_company", m.maker), status, installed,
			pick(d, g.members).sysID, id("sys_user_group", support), id("cmn_location", site), id("core_company", home), m.cost, environment, "Discovery",
			stamp(today.Add(-time.Duration(d.n(24*60))*time.Minute)), fmt.Sprintf("10.10.%d.%d", i%len(sites), 10+i), mac(d), name+".example.com", "example.com", "true",
			name, system, version, "2", cores, m.cpu, m.ram, m.disk, "Server", strconv.FormatBool(m.maker == "VMware"), environment, wall)
		w.servers = append(w.servers, item{sysID: id("cmdb_ci", name), name: name})
	}
	return servers
}

func (w *world) networkGear(d dice, from []model) (*sheet, []item) {
	hardware := newSheet("cmdb_ci_hardware", "name", "serial_number", "model_id", "manufacturer", "support_group", "location", "company", "cost", "ip_address",
		"mac_address", "monitor")
	var gear []item
	for i := range 28 {
		at := w.locations[i%len(w.locations)]
		m := from[i%len(from)]
		kind := map[string]string{"Cat": "sw", "SRX": "fw", "Las": "prn"}[m.name[:3]]
		if strings.HasSuffix(m.name, "Access Point") {
			kind = "ap"
		}
		name := fmt.Sprintf("%s-%s-%02d", strings.ToLower(strings.ReplaceAll(at.city, " ", "")), kind, i+1)
		hardware.add(id("cmdb_ci", name), name, serialNumber(d), m.id(), id("core_company", m.maker), id("sys_user_group", "Network"),
			id("cmn_location", at.city), id("core_company", home), m.cost, fmt.Sprintf("10.0.%d.1", i), mac(d), "true")
		gear = append(gear, item{sysID: id("cmdb_ci", name), name: name})
	}
	return hardware, gear
}

// offered makes the services, what is offered of each, and what each stands on.
func (w *world) offered(d dice, gear []item) (services, offerings, relations *sheet) {
	services = newSheet("cmdb_ci_service", "name", "short_description", "owned_by", "managed_by", "support_group", "company", "busines_criticality", "service_classification")
	offerings = newSheet("service_offering", "name", "short_description", "parent", "company", "price")
	relations = newSheet("cmdb_rel_ci", "parent", "child", "type", "connection_strength")
	relate := func(parent, child item, kind string) {
		key := parent.name + " " + child.name + " " + kind
		relations.add(id("cmdb_rel_ci", key), parent.sysID, child.sysID, kind, "always")
	}
	for i, line := range []string{
		"Email|Mailboxes and calendars|1 - most critical", "Payroll|Pays everyone on the 25th|1 - most critical", "Online Shop|Takes customers' orders|1 - most critical",
		"ERP|Orders, stock and books|1 - most critical", "CRM|Customers and offers|2 - somewhat critical", "Intranet|News and forms|3 - less critical",
		"File Sharing|Shared folders|2 - somewhat critical", "Remote Access|VPN from anywhere|2 - somewhat critical", "Wireless|Wi-Fi in all offices|2 - somewhat critical",
		"Printing|Paper, still|4 - not critical", "Telephony|Desk phones and meetings|2 - somewhat critical", "Build Farm|Builds and tests our products|3 - less critical",
		"Data Warehouse|Figures for decisions|3 - less critical", "Identity|Logins for everything|1 - most critical",
	} {
		f := strings.Split(line, "|")
		kind := "Business Service"
		if i >= 6 {
			kind = "Technical Service"
		}
		s := item{sysID: id("cmdb_ci", f[0]), name: f[0]}
		services.add(s.sysID, f[0], f[1], pick(d, w.users).sysID, pick(d, w.agents).sysID, id("sys_user_group", "Service Desk"), id("core_company", home), f[2], kind)
		w.services = append(w.services, s)
		offer := f[0] + " - Standard"
		offerings.add(id("cmdb_ci", offer), offer, f[1]+", in office hours", s.sysID, id("core_company", home), fmt.Sprintf("%d.00", 5+5*d.n(10)))
		for k := range 4 { // four different servers each, with neighbours sharing some
			relate(s, w.servers[(i*3+k*7)%len(w.servers)], "Depends on::Used by")
		}
	}
	for i, s := range w.servers {
		relate(s, gear[i%len(gear)], "Connects to::Connected by")
	}
	return services, offerings, relations
}

func serialNumber(d dice) string {
	const letters = "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789"
	b := make([]byte, 10)
	for i := range b {
		b[i] = letters[d.n(len(letters))]
	}
	return string(b)
}

// mac returns a locally administered address: one that no maker ever gave away.
func mac(d dice) string {
	return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", d.n(256), d.n(256), d.n(256), d.n(256), d.n(256))
}

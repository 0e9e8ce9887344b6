package main

import (
	"fmt"
	"strings"
)

// world is what has been made so far, for later tables to refer to.
type world struct {
	locations   []location
	departments []string // names; the key of cmn_department and cmn_cost_center
	users       []user
	agents      []user // those who work on tasks
	groups      []group
	computers   []item
	servers     []item
	services    []item
}

func newWorld() *world { return &world{} }

type location struct{ city, country, zone string }

// home is the company that everyone in the demo works for.
const home = "ACME Corporation"

var makers = []string{"Apple", "Dell Inc.", "HP", "Lenovo", "Cisco Systems", "Microsoft", "Oracle", "IBM", "VMware", "Red Hat", "Juniper Networks", "Canonical"}

func (w *world) organisation() []*sheet {
	companies := newSheet("core_company", "name", "parent", "city", "country", "website", "customer", "vendor", "manufacturer", "primary")
	companies.add(id("core_company", home), home, "", "Chicago", "United States", "https://www.example.com", "false", "false", "false", "true")
	for _, region := range []string{"North America", "EMEA", "APAC"} {
		name := "ACME " + region
		companies.add(id("core_company", name), name, id("core_company", home), "", "", "", "false", "false", "false", "false")
	}
	for _, name := range makers {
		companies.add(id("core_company", name), name, "", "", "United States", "", "false", "true", "true", "false")
	}

	places := newSheet("cmn_location", "name", "full_name", "city", "country", "latitude", "longitude", "time_zone", "parent", "company")
	add := func(name, parent, city, country, latitude, longitude, zone string) {
		full, above := name, ""
		if parent != "" {
			full, above = parent+"/"+name, id("cmn_location", parent)
		}
		places.add(id("cmn_location", name), name, full, city, country, latitude, longitude, zone, above, id("core_company", home))
	}
	for _, line := range strings.Split(strings.TrimSpace(cities), "\n") {
		f := strings.Split(line, "|")
		if f[0] == "" {
			add(f[1], "", "", f[1], "", "", "")
			continue
		}
		add(f[0], f[1], f[0], f[1], f[2], f[3], f[4])
		w.locations = append(w.locations, location{city: f[0], country: f[1], zone: f[4]})
	}

	departments := newSheet("cmn_department", "name", "id", "description", "company", "cost_center")
	centers := newSheet("cmn_cost_center", "name", "code", "account_number", "valid_from")
	for i, line := range []string{
		"IT|Runs the company's systems", "Development|Builds the products", "Finance|Books and pays", "HR|Hires and helps",
		"Sales|Sells the products", "Customer Support|Answers customers", "Marketing|Tells the world", "Legal|Reads the contracts",
		"Operations|Keeps the plants running", "Product Management|Decides what is built next",
	} {
		name, what, _ := strings.Cut(line, "|")
		departments.add(id("cmn_department", name), name, fmt.Sprintf("D%03d", (i+1)*10), what, id("core_company", home), id("cmn_cost_center", name))
		centers.add(id("cmn_cost_center", name), name, fmt.Sprintf("CC-%04d", 1000+(i+1)*100), fmt.Sprintf("%06d", 400000+(i+1)*250), "2020-01-01")
		w.departments = append(w.departments, name)
	}
	return []*sheet{companies, places, departments, centers}
}

// city|country|latitude|longitude|time zone; a country alone stands above its cities.
const cities = `
|United States
Chicago|United States|41.8781|-87.6298|US/Central
New York|United States|40.7128|-74.006|US/Eastern
Boston|United States|42.3601|-71.0589|US/Eastern
San Diego|United States|32.7157|-117.1611|US/Pacific
Seattle|United States|47.6062|-122.3321|US/Pacific
Atlanta|United States|33.749|-84.388|US/Eastern
Dallas|United States|32.7767|-96.797|US/Central
|United Kingdom
London|United Kingdom|51.5072|-0.1276|Europe/London
Manchester|United Kingdom|53.4808|-2.2426|Europe/London
|Germany
Berlin|Germany|52.52|13.405|Europe/Berlin
Munich|Germany|48.1351|11.582|Europe/Berlin
|France
Paris|France|48.8566|2.3522|Europe/Berlin
|Netherlands
Amsterdam|Netherlands|52.3676|4.9041|Europe/Berlin
|Japan
Tokyo|Japan|35.6764|139.65|Asia/Tokyo
Osaka|Japan|34.6937|135.5023|Asia/Tokyo
|Australia
Sydney|Australia|-33.8688|151.2093|Australia/Sydney
Melbourne|Australia|-37.8136|144.9631|Australia/Sydney
`

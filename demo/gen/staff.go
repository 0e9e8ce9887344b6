package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// newHRSheet is a sheet of the part hr, whose tables have keys of their own.
func newHRSheet(table string, header ...string) *sheet {
	return &sheet{part: "hr", table: table, header: header}
}

// country|city|postal code|street, 23 of them.
const siteLines = `
CH|Basel|4051|Freie Strasse 40
CH|Bern|3011|Marktgasse 8
DE|Ulm|89073|Hirschstrasse 14
DE|Leipzig|04109|Petersstrasse 3
AT|Linz|4020|Landstrasse 62
FR|Nantes|44000|Rue Crebillon 21
FR|Lille|59800|Rue Nationale 118
IT|Turin|10121|Via Roma 305
IT|Trieste|34121|Corso Italia 9
ES|Bilbao|48009|Gran Via 45
PT|Braga|4700|Rua do Souto 17
GB|Leeds|LS1 6HD|The Headrow 77
GB|Bristol|BS1 5TR|Park Street 12
IE|Cork|T12 Y275|Patrick Street 30
NL|Utrecht|3511|Oudegracht 134
BE|Ghent|9000|Veldstraat 55
DK|Aarhus|8000|Ryesgade 23
SE|Uppsala|753 20|Svartbacksgatan 6
FI|Tampere|33100|Hameenkatu 19
US|Boulder|80302|Pearl Street 1500
US|Savannah|31401|Broughton Street 201
CA|Halifax|B3J 1S9|Barrington Street 1800
JP|Kobe|650-0021|Sannomiya 2
`

// id|title|least salary|highest salary, 19 of them.
const jobLines = `
CEO|Chief executive|20000|40000
CFO|Chief financial officer|15000|30000
CTO|Chief technology officer|15000|30000
FI_MGR|Finance manager|8200|16000
FI_ACC|Accountant|4200|9000
AC_MGR|Accounting manager|8200|16000
AC_PUB|Public accountant|4200|9000
SA_MGR|Sales manager|10000|20100
SA_REP|Sales representative|6000|12000
PU_MGR|Purchasing manager|8000|15000
PU_CLK|Purchasing clerk|2500|5500
ST_MGR|Stock manager|5500|8500
ST_CLK|Stock clerk|2000|5000
SH_CLK|Shipping clerk|2500|5500
IT_PRG|Programmer|4000|10000
MK_MGR|Marketing manager|9000|15000
MK_REP|Marketing representative|4000|9000
HR_REP|People representative|4000|9000
PR_REP|Press representative|4500|10500
`

// name|job of its manager|job of the others|people in all; 27 of them, most of them empty still.
const departmentLines = `
Executive|CEO|CTO|3
Finance|FI_MGR|FI_ACC|6
Accounting|AC_MGR|AC_PUB|2
Sales|SA_MGR|SA_REP|34
Purchasing|PU_MGR|PU_CLK|6
Warehouse|ST_MGR|ST_CLK|25
Shipping|ST_MGR|SH_CLK|20
Engineering|CTO|IT_PRG|5
Marketing|MK_MGR|MK_REP|2
People|HR_REP|HR_REP|1
Press|PR_REP|PR_REP|1
Administration|FI_MGR|FI_ACC|2
Treasury|||0
Corporate tax|||0
Credit control|||0
Shareholder services|||0
Benefits|||0
Manufacturing|||0
Construction|||0
Contracting|||0
Operations|||0
IT support|||0
Network operations|||0
Help desk|||0
Public sector sales|||0
Retail sales|||0
Recruiting|||0
`

// staff makes the part hr: 27 departments with 107 people in 19 jobs at 23 places, as many as in the sample that users of SQL endpoints know.
func staff() []*sheet {
	d := newDice("staff")
	changed := stamp(today.AddDate(0, -1, 0))
	locations := newHRSheet("locations", "location_id", "street_address", "postal_code", "city", "country")
	for i, line := range lines(siteLines) {
		f := strings.Split(line, "|")
		locations.add(strconv.Itoa(1000+100*i), f[3], f[2], f[1], f[0])
	}
	jobs := newHRSheet("jobs", "job_id", "job_title", "min_salary", "max_salary")
	pay := map[string][2]int{}
	for _, line := range lines(jobLines) {
		f := strings.Split(line, "|")
		low, _ := strconv.Atoi(f[2])
		high, _ := strconv.Atoi(f[3])
		pay[f[0]] = [2]int{low, high}
		jobs.add(f[0], f[1:]...)
	}
	departments := newHRSheet("departments", "department_id", "department_name", "manager_id", "location_id", "changed_at")
	employees := newHRSheet("employees", "employee_id", "first_name", "last_name", "email", "phone_number", "hire_date", "job_id", "salary", "commission_pct",
		"manager_id", "department_id", "changed_at")
	history := newHRSheet("job_history", "employee_id", "start_date", "end_date", "job_id", "department_id")
	next, chief := 100, ""
	for i, line := range lines(departmentLines) {
		f := strings.Split(line, "|")
		department := strconv.Itoa(10 * (i + 1))
		count, _ := strconv.Atoi(f[3])
		manager := ""
		for n := range count {
			key, job, above := strconv.Itoa(next), f[2], manager
			if n == 0 {
				job, above, manager = f[1], chief, key
			}
			if chief == "" {
				chief = key
			}
			next++
			first, last := pick(d, givenNames), pick(d, familyNames)
			hired := today.AddDate(0, 0, -200-d.n(3800))
			salary := pay[job][0] + 100*d.n((pay[job][1]-pay[job][0])/100)
			commission := ""
			if strings.HasPrefix(job, "SA_") {
				commission = fmt.Sprintf("0.%d", 1+d.n(4))
			}
			email := fmt.Sprintf("%s.%s.%s@example.com", strings.ToLower(first), strings.ToLower(last), key)
			phone := fmt.Sprintf("555.01%02d.%04d", i+1, d.n(10_000))
			employees.add(key, first, last, email, phone, date(hired), job, strconv.Itoa(salary), commission, above, department, changed)
			if d.chance(10) {
				before := hired.Add(-time.Duration(300+d.n(900)) * 24 * time.Hour)
				history.add(key, date(before), date(hired.AddDate(0, 0, -1)), pick(d, []string{"AC_PUB", "ST_CLK", "SA_REP", "IT_PRG"}), department)
			}
		}
		departments.add(department, f[0], manager, strconv.Itoa(1000+100*d.n(23)), changed)
	}
	return []*sheet{locations, jobs, departments, employees, history}
}

func lines(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") }

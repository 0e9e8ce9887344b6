package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// LeverSchema is the schema of the endpoints that [WriteLevers] writes.
const LeverSchema = "levers"

// WriteLevers adds to a project folder that has the demo's tables departments and employees what [OrdsLevers] and [OrdsPool] call: each
// statement under several settings, so that two endpoints differ in nothing but the lever that is looked at. With departments above 0 it
// adds two larger tables of made-up records, too.
func WriteLevers(dir string, departments, employees int) error {
	files := leverEndpoints(departments > 0)
	if departments > 0 {
		files["tables/lever_departments.yaml"] = leverDepartments
		files["tables/lever_employees.yaml"] = leverEmployees
		files["data/lever_departments.csv"], files["data/lever_employees.csv"] = leverData(departments, employees)
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// leverEndpoints are the endpoints' files by path.
func leverEndpoints(scale bool) map[string]string {
	files := make(map[string]string)
	add := func(file, name, sql string, notes ...string) {
		text := "-- @method GET " + name + "/\n"
		for _, n := range notes {
			text += "-- @" + n + "\n"
		}
		files["endpoints/"+LeverSchema+"/"+file+".sql"] = text + sql
	}
	const none = "etag NONE"
	add("flat", "flat", flatSQL, "public", none)
	add("flat_login", "flat_login", flatSQL, none)
	add("flat_database", "flat_database", flatSQL, none, "auth database", "store postgres")
	for _, w := range []struct{ name, sql string }{{"cheap", flatSQL}, {"heavy", heavySQL}} {
		add(w.name+"_none", w.name+"_none", w.sql, "public", none)
		add(w.name+"_hash", w.name+"_hash", w.sql, "public", "etag HASH")
		add(w.name+"_query", w.name+"_query", w.sql, "public", "etag QUERY "+tagSQL)
	}
	nested := func(suffix string, page string, table func(string) string) {
		add("rows"+suffix, "rows"+suffix, table(cursorSQL), "public", none, page, "nested rows")
		add("cursor"+suffix, "cursor"+suffix, table(cursorSQL), "public", none, page)
		add("json"+suffix+".sqlite", "json"+suffix, table(jsonSQLite(suffix != "")), "public", none, "store sqlite")
		add("json"+suffix+".postgres", "json"+suffix, table(jsonPostgres(suffix != "")), "public", none, "store postgres")
	}
	nested("", "page 0", func(s string) string { return s })
	add("rows3", "rows3", threeSQL, "public", none, "page 0", "nested rows")
	add("cursor3", "cursor3", threeSQL, "public", none, "page 0")
	if scale {
		large := strings.NewReplacer("from departments", "from lever_departments", "from employees", "from lever_employees")
		nested("_large", "page 25", large.Replace)
	}
	add("hold", "hold", "select 1 as held from pg_sleep(:seconds)\n", "public", none, "param seconds URI DOUBLE", "store postgres")
	return files
}

// The statements. flatSQL answers 25 rows, the page of the article's server; heavySQL compares employees with each other and takes some
// milliseconds; tagSQL is what both depend on.
const (
	flatSQL = `select employee_id, first_name, last_name, email, phone_number, job_id, salary, manager_id, department_id
  from employees
 order by employee_id
`
	heavySQL = `select D.department_name, count(*) as pairs, avg(abs(A.salary - B.salary)) as gap
  from employees A
  join employees B on B.employee_id <> A.employee_id
  join departments D on D.department_id = A.department_id
 where abs(A.salary - B.salary) % 7 < 5
 group by D.department_name
 order by D.department_name
`
	tagSQL = `select max(changed_at), count(*) from employees`

	cursorSQL = `select department_name,
       cursor(
         select first_name, last_name, salary
           from employees E
          where D.department_id = E.department_id
          order by E.employee_id
       ) employees
  from departments D
 order by D.department_id
`
	threeSQL = `select D.department_id, D.department_name,
       cursor(select city, country from locations L where L.location_id = D.location_id) located,
       cursor(
         select E.employee_id, E.first_name, E.last_name, E.hire_date
           from employees E
          where E.department_id = D.department_id
          order by E.employee_id
       ) employees,
       cursor(
         select J.job_id, J.job_title, count(*) people
           from employees E join jobs J on J.job_id = E.job_id
          where E.department_id = D.department_id
          group by J.job_id, J.job_title
          order by J.job_id
       ) jobs
  from departments D
 order by D.department_id
`
)

// jsonSQLite and jsonPostgres are what a person writes who makes the JSON by hand, as the article did, for the whole table or its first 25.
func jsonSQLite(first25 bool) string {
	return `select json_group_array(json_object(
         'department_name', D.department_name,
         'employees', json((
           select json_group_array(json_object('first_name', first_name, 'last_name', last_name, 'salary', salary))
             from (select first_name, last_name, salary from employees E where E.department_id = D.department_id order by E.employee_id)))
       )) as "{}departments"
  from (select department_id, department_name from departments order by department_id` + limit25(first25) + `) D
`
}

func jsonPostgres(first25 bool) string {
	return `select json_agg(json_build_object(
         'department_name', D.department_name,
         'employees', (
           select coalesce(json_agg(json_build_object('first_name', first_name, 'last_name', last_name, 'salary', salary) order by E.employee_id), '[]'::json)
             from employees E
            where E.department_id = D.department_id)
       ) order by D.department_id) as "{}departments"
  from (select department_id, department_name from departments order by department_id` + limit25(first25) + `) D
`
}

func limit25(yes bool) string {
	if yes {
		return " limit 25"
	}
	return ""
}

// The larger tables have what the article's statement reads.
const (
	leverDepartments = `name: lever_departments
label: Department (large)
audit: false
key: [department_id]
display: department_name
fields:
  - {name: department_id, label: Department ID, type: integer, mandatory: true}
  - {name: department_name, label: Name, type: string, max_length: 30, mandatory: true}
`
	leverEmployees = `name: lever_employees
label: Employee (large)
audit: false
key: [employee_id]
display: last_name
fields:
  - {name: employee_id, label: Employee ID, type: integer, mandatory: true}
  - {name: first_name, label: First name, type: string, max_length: 20}
  - {name: last_name, label: Last name, type: string, max_length: 25, mandatory: true}
  - {name: salary, label: Salary, type: integer}
  - {name: department_id, label: Department, type: integer}
indexes: [[department_id]]
`
)

// leverData makes the records of the larger tables, the same at each call: employees are spread evenly over the departments.
func leverData(departments, employees int) (d, e string) {
	first := []string{"Ada", "Bruno", "Chiara", "Dmitri", "Elin", "Farid", "Greta", "Hiro", "Ines", "Jonas", "Kaya", "Lars", "Mina"}
	last := []string{"Abel", "Brandt", "Costa", "Duval", "Eriksen", "Fischer", "Garcia", "Hansen", "Ito", "Janssen", "Keller"}
	var ds, es bytes.Buffer
	ds.WriteString("department_id,department_name\n")
	for i := range departments {
		fmt.Fprintf(&ds, "%d,Department %d\n", i+1, i+1)
	}
	es.WriteString("employee_id,first_name,last_name,salary,department_id\n")
	for i := range employees {
		fmt.Fprintf(&es, "%d,%s,%s,%d,%d\n", i+1, first[i%len(first)], last[i%len(last)], 2000+i*37%23000, i%departments+1)
	}
	return ds.String(), es.String()
}

-- A flat page: q filters it, offset and limit page through it.
-- @method GET people/
-- @comment Employees with job and department
select E.employee_id, E.first_name, E.last_name, E.email, E.hire_date, E.salary, E.commission_pct, J.job_title, D.department_name,
       './' || E.employee_id as "$.id"
  from employees E
  join jobs J on J.job_id = E.job_id
  left join departments D on D.department_id = E.department_id
 order by E.employee_id

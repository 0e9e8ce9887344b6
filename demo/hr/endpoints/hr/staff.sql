-- The plainest page: no links, no dates.
-- @method GET staff/
-- @etag NONE
-- @comment Employees as they stand in the table
select employee_id, first_name, last_name, email, phone_number, job_id, salary, manager_id, department_id
  from employees
 order by employee_id

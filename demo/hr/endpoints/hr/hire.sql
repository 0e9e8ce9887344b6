-- Two statements in one transaction; the answer is the new employee, who is read where the Location says.
-- @method POST people/
-- @roles hr_user
-- @mimes application/json
-- @param first_name URI STRING IN
-- @param last_name URI STRING IN
-- @param email URI STRING IN
-- @param job_id URI STRING IN
-- @param salary URI INT IN
-- @param department_id URI INT IN
-- @comment Hires somebody
insert into employees (employee_id, first_name, last_name, email, hire_date, job_id, salary, department_id, changed_at)
  select coalesce(max(employee_id), 99) + 1, :first_name, :last_name, :email, current_date, :job_id, :salary, :department_id, current_timestamp from employees
  returning employee_id as ":id";
select 201 as ":status_code", './' || :id as ":forward_location"

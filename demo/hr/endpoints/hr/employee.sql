-- @method GET people/:id
-- @source json/item
-- @etag QUERY select changed_at from employees where employee_id = :id
-- @param id URI INT IN
-- @comment One employee; the tag costs one look at an index, and when it matches nothing else is run
select E.employee_id, E.first_name, E.last_name, E.email, E.phone_number, E.hire_date, E.salary, E.commission_pct, E.job_id, E.manager_id,
       E.department_id, E.changed_at
  from employees E
 where E.employee_id = :id

-- The same, with one query for each department: to see what the one statement is worth.
-- @method GET departments_rows/
-- @nested rows
-- @etag NONE
-- @page 0
-- @comment Departments with their employees, read one by one
select department_name,
       cursor(
         select first_name, last_name, salary
           from employees E
          where D.department_id = E.department_id
          order by E.employee_id
       ) employees
  from departments D
 order by D.department_id

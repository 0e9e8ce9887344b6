-- Departments with the people who work there. The nested rows are part of the one statement that the database runs.
-- @method GET departments/
-- @etag NONE
-- @page 0
-- @comment Departments with their employees
select department_name,
       cursor(
         select first_name, last_name, salary
           from employees E
          where D.department_id = E.department_id
          order by E.employee_id
       ) employees
  from departments D
 order by D.department_id

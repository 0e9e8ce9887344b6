-- The same, with JSON made by hand.
-- @method GET departments_json/
-- @store postgres
-- @etag NONE
-- @comment Departments with their employees, as JSON made by the statement
select json_agg(json_build_object(
         'department_name', D.department_name,
         'employees', (
           select coalesce(json_agg(json_build_object('first_name', first_name, 'last_name', last_name, 'salary', salary) order by E.employee_id), '[]'::json)
             from employees E
            where E.department_id = D.department_id)
       ) order by D.department_id) as "{}departments"
  from departments D

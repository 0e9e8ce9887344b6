-- The same, with JSON made by hand.
-- @method GET departments_json/
-- @store sqlite
-- @etag NONE
-- @comment Departments with their employees, as JSON made by the statement
select json_group_array(json_object(
         'department_name', D.department_name,
         'employees', json((
           select json_group_array(json_object('first_name', first_name, 'last_name', last_name, 'salary', salary))
             from (select first_name, last_name, salary from employees E where E.department_id = D.department_id order by E.employee_id)))
       )) as "{}departments"
  from (select department_id, department_name from departments order by department_id) D

-- @method GET search/:name?
-- @param name URI STRING IN
-- @param least URI INT IN
-- @comment Employees whose last name begins so, and who earn at least so much
select employee_id, first_name, last_name, salary
  from employees
 where (:name is null or lower(last_name) like lower(:name) || '%')
   and (:least is null or salary >= :least)
 order by last_name, employee_id

-- @method GET pay_gap/
-- @comment What is heavy: every pair of employees is compared
select D.department_name, count(*) pairs, avg(abs(A.salary - B.salary)) gap
  from employees A
  join employees B on B.employee_id <> A.employee_id
  join employees C on C.employee_id <> A.employee_id and C.employee_id < 150
  join departments D on D.department_id = A.department_id
 group by D.department_name
 order by D.department_name

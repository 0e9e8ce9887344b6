-- @method GET pay_gap_tagged/
-- @etag QUERY select max(changed_at), count(*) from employees
-- @comment The same, with a tag that is cheaper than the rows
select D.department_name, count(*) pairs, avg(abs(A.salary - B.salary)) gap
  from employees A
  join employees B on B.employee_id <> A.employee_id
  join employees C on C.employee_id <> A.employee_id and C.employee_id < 150
  join departments D on D.department_id = A.department_id
 group by D.department_name
 order by D.department_name

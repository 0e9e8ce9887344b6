-- @method GET salaries.csv
-- @source csv/query
-- @comment What jobs pay
select J.job_id, J.job_title, count(*) people, min(E.salary) lowest, max(E.salary) highest
  from employees E join jobs J on J.job_id = E.job_id
 group by J.job_id, J.job_title
 order by J.job_id

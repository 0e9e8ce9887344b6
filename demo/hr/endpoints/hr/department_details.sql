-- Departments with three nested queries, one of them two levels deep, as the customer of the article had.
-- @method GET department_details/
-- @page 0
-- @comment Departments with place, people, what they did before, and the jobs there are
select D.department_id, D.department_name,
       cursor(select city, country from locations L where L.location_id = D.location_id) located,
       cursor(
         select E.employee_id, E.first_name, E.last_name, E.hire_date,
                cursor(select H.start_date, H.end_date, H.job_id from job_history H where H.employee_id = E.employee_id order by H.start_date) earlier
           from employees E
          where E.department_id = D.department_id
          order by E.employee_id
       ) employees,
       cursor(
         select J.job_id, J.job_title, count(*) people
           from employees E join jobs J on J.job_id = E.job_id
          where E.department_id = D.department_id
          group by J.job_id, J.job_title
          order by J.job_id
       ) jobs
  from departments D
 order by D.department_id

"""Decisions over days: treatment over a whole stay, and any other process.

process            the questions that planning asks of a process, and its arrays, checked
tabular            TabularMDP: a process given as arrays; tabular_env: what environments show of their table
treatment_course   treatment over days as a process; course_records: its records
public_classes     which states are hidden among each other: features that are public and never change
step_problems      what a private policy faces on each day
chain              what a process is worth if every state always acts by the same probabilities
planning           the best plan and what a policy is worth; planning_infinite: without a horizon
budget, allocation, composition   what each day may spend, so that all days stay within one total
private_course     a policy under its own continuation; private_planner: where to spend a total
course_evaluation  what a policy is worth over days, exactly
schedules          the same action for everybody, changing by the day; schedule_search: which to choose among;
class_schedules: those of each public class
once               one private choice of a schedule
course_limit       what no private mechanism for the whole course exceeds
course_comparison  policies over epsilon and over totals, over all days of a process; course_columns: its columns
privatize_policy   a private policy of anybody's Q-values; private_network: of a network's
days               treatment over days against the total budget
course_findings, course_brief    what such a comparison says, and which way of spending a total is best
course_question    the same as a question, and what it prints
simulation, simulated_log, simulation_question   the check by simulated patients, counted; the simulator's own log, of
single ones; and both as a question
"""

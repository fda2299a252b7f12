"""Decisions over days: treatment over a whole stay, and any other process.

process            the questions that planning asks of a process, its public classes, and its arrays, checked
tabular            TabularMDP: a process given as arrays, or by an environment that shows its table
treatment_course   treatment over days as a process, and its records
planning           the decisions of a process, the best plan, and what a policy is worth
planning_infinite  the same without a horizon: Markov chains, and policy iteration
budget             what each day may spend, so that all days stay within one total, and how days add up
affordable         the largest epsilon within a budget, and which days buy what
schedules          the same action for everybody in a public class, changing by the day; which to choose among
once               one private draw of a schedule
course_tree        trees of published courses: what mass is worth in them, and its prices
tree_search        which courses, and with which weights: by cutting planes
plan_tree          the mechanism that reacts within a tree
course_proof       proofs of what no mechanism for a course exceeds, in rational numbers
course_evaluation  what a policy is worth over days, exactly, and the columns that say so
private_planner    a policy under its own continuation, and where to spend a total
course_limit       what no private mechanism for the whole course exceeds
course_comparison  policies over epsilon and over totals, over all days of a process
days               treatment over days against the total budget, and which way of spending it is best
days_findings      its options, their differences, who is harmed, what leaks, and how a total is spent
days_words         the screen of it
days_report        the same as a report, with figures
simulation         the check by simulated patients
simulated_log      the simulator's own log: a row for each of them
"""

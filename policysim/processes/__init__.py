"""Decision processes: days of decisions on the same records, planned and evaluated exactly.

process            what planning asks of a process
tabular            TabularMDP: from arrays (tabular_arrays) or an environment (tabular_env)
treatment_course   treatment over days of a study's scenario, on all its records
chain              what happens for ever under one policy, without a horizon
planning           optimal Q-values, values of policies; planning_infinite: without a horizon
step_problems      the decisions of a process, day by day, as a private policy faces them
evaluation, comparison   policies over epsilon, over the whole course
schedule           one treatment for all, by the day
budget             what each day may spend, so that all days stay within one privacy budget; allocation: the search
privatize_policy, private_network   a private policy of anybody's Q-values
"""

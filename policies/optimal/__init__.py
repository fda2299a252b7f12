"""The limit: the epsilon-private policy of highest value, and the proof that no other does better.

optimum          Optimal, the policy, and those that it is within bounds or over several priors
classes          the optimum by orders of preference, and class by class where some features are public
ceilings         the least loss of a class of records that must all be hard to tell apart
whole_programme  the whole linear programme, where a record has several cliques of neighbours
programmes       small packing programmes at once by the simplex method, and any programme by HiGHS
bounded          the optimum within bounds, and what is possible; the best in the worst case over several priors
bounds           what is asked: bounds, and priors
rows             what a policy costs, row by row, for records that allow the same actions
mixtures         the best mixture of private policies; oracles: where they come from
value_limit      the limit as a number: what no policy exceeds, and what one is known to reach
certificate      proofs for `policies.proof`, which knows none of this and decides
"""

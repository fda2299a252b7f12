"""The limit: the epsilon-private policy of highest value, and the proof that no other does better.

optimum      Optimal, the policy; where a record has several cliques of neighbours, the whole linear programme
classes      the optimum by orders of preference, and class by class where some features are public
ceilings     the least loss of a class of records that must all be hard to tell apart
sets         how much each set of actions is worth to those who prefer it
programmes   small packing programmes at once by the simplex method, and any programme by HiGHS
value_limit  the limit as a number: what no policy exceeds, and what one is known to reach
certificate  a proof that a script can check which knows none of this
"""

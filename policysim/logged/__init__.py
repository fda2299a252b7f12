"""Policies on the patients of a log: what each arm did, and what a private choice among the arms is worth.

arms       the mean of each arm with its interval, before any model
caveats    what may be wrong with a log, in words
simultaneous   a policy against the best of several arms, whichever that is
best_arm   a policy's value minus that of the best single arm, for `policysim evaluate`
fitting    scores and prior fitted to a log: a decision problem over all declared records
splits     repeated splits: policies made from one part, evaluated on the other
estimates  means with errors, shares, and what repeated splits say together
measures   what is measured of a policy on one split, group by group
held_out   the comparison of policies as one tidy table
findings   what it found, as numbers and sentences
screen     what `policysim compare` prints
drawings   its figures, with their words and data
report     the files that it leaves behind
"""

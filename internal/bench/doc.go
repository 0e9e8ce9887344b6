// Package bench measures a server from outside: a plain HTTP client that knows what the right answers are.
//
// It repeats the experiments of the article that weir began with. [NowBatch] is its comparison of single calls with
// batches of 5, 10 and 20; [NowFlood] is its customer, whose page made 20 calls at once. [Load], [Probe] and
// [Fairness] are small load loops for the speed bars. None of them imports a part of the server, so each runs
// against anything that speaks the Now dialect.
//
// Three rules hold everywhere. An answer counts only when it is right: the experiments check status, ids and bodies, the
// load loops the status and what the caller wants checked; a wrong answer makes the result fail. The load model is stated in the result: closed (the next request follows the
// answer) or scheduled (starts are planned, and the time of a late start counts as waiting). Times of failures never enter the
// histograms of successes.
//
// Percentiles are nearest rank over an HDR histogram of three significant digits.
package bench

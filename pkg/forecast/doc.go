// Package forecast says how many requests will arrive at a model, from counts of those that
// did: a Belief is a distribution over rates, each count makes the next one of it, and
// Quantile asks it what will not be exceeded some time from now. TokenMean is a slow mean of the
// lengths of the requests, which are not forecast: a Belief counts longer ones as more of them.
//
// All of them are values, and observing is a pure function: the same counts give the same
// belief. It must never take a count that some arrivals are missing from for a fall. Read
// Belief first, then motions, which says in which ways a load may move, and History, which is
// how it moved on earlier days.
//
// # The numbers that decide
//
// A test holds the list complete. The sources are those of package decision: P for published,
// M for measured, C for chosen.
//
//	motions               shares/s  M  how loads move: half and twice cost 1 to 3 points of the promise or 5 to 20 % of the cost
//	firstSlope            -         M  how fast a load that begins may climb; less answers the first rise later
//	outputWeight          tokens    M  prompt tokens that cost as much as one token of an answer: 5 sees longer prompts too late
//	dispersionHalfLife    time      C  memory of how bursty the arrivals are
//	dispersionPrior       counts    C  weight of independent arrivals before anything was seen
//	dispersionTrim        -         P  the 99.5 % point of what independent arrivals do: what exceeds it is a step
//	latelyHalfLife        time      M  memory of where the load was, and weight of a load that does not jump: half and twice change little
//	HistoryAgo            time      C  people and their machines keep the hours of the day and the days of the week
//	HistoryStep           time      M  two and five minutes do as well
//	HistoryBehind         time      C  a step, and another since it was read
//	HistoryAhead          time      C  it is read once an hour, and a start-up is less than another
//	historyScale          -         C  days that differ by more are not alike: bounds what one of them can ask for
//	historyPeak           -         C  times as much as before and after it that one step may count: more is a fault of counting
//	precision             share     C  that of a quantile, which is looked for: any small one
//	tokenHalfLife         time      C  memory of the lengths of requests
package forecast

// Command ablation switches off the rules of the decision, one at a time, and says what each buys.
//
//	make ablate
//	make ablate RULE=switch-owes,misfits-go
//	make ablate SEEDS=2000 DATA=FOLDER
//
// A rule earns its place when without it one of three things happens: the judge moves beyond its
// noise, a scenario of the closed loop fails, or a promise of the documentation breaks. The first two
// are measured here. The judge replays loads in virtual time and compares, seed by seed, the cost and
// the share of requests that met the SLO. The third stands with each rule in rules.go: what it is for,
// in words, and who says so.
//
// A rule is switched off by a statement that is put first into one of its functions, or by another
// value of a constant. The Go tool compiles the changed file in place of the real one (its flag
// -overlay), so that the product has no switches. A rule whose function is gone is an error, and a
// test finds it.
package main

// Package front judges scaling policies by what they kept and what they cost: which
// settings of a policy are worth having at all (a front), what a front costs at a given
// attainment, by how much one policy is dearer or cheaper than others at their best, and
// whether a number says so beyond its noise.
//
// Attainments are shares from 0 to 1, costs are of any one unit. It knows nothing of
// policies and settings but their names, and runs nothing.
//
// Read Front first, then Judge and Verdict, then Claim.
package front

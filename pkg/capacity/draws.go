package capacity

// Draws is a sequence of numbers without order that is the same each time: SplitMix64 of
// Steele, Lea and Flood (2014). Its value says where in the sequence it is.
type Draws uint64

// step is how far apart the values of two numbers in a row are.
const step = 0x9e3779b97f4a7c15

// Skip leaves out so many numbers.
func (d *Draws) Skip(numbers uint64) { *d += Draws(numbers * step) }

// Next is the next number.
func (d *Draws) Next() uint64 {
	d.Skip(1)
	x := uint64(*d)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

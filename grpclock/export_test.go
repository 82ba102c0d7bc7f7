package grpclock

// Known is how many methods the guard remembers.
func (g *Guard) Known() int { return g.methods.Len() }

package grpclock

// Known is how many methods the guard remembers.
func (g *Guard) Known() int { return len(g.current.Load().methods) }

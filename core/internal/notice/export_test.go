package notice

// Keys returns how many keys have leases about which a message makes n ask.
func (n *Notices) Keys() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.keyed)
}

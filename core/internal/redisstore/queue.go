package redisstore

// queue is what is under way on a pipeline, in order: a ring that grows.
type queue struct {
	ring  []*command
	first int
	n     int
	bytes int // of all of them, as they are sent
}

func (q *queue) len() int { return q.n }

// at is the i-th from the front.
func (q *queue) at(i int) *command { return q.ring[(q.first+i)&(len(q.ring)-1)] }

func (q *queue) push(c *command) {
	if q.n == len(q.ring) {
		larger := make([]*command, max(64, 2*q.n)) // a power of two
		for i := range q.n {
			larger[i] = q.at(i)
		}
		q.ring, q.first = larger, 0
	}
	q.ring[(q.first+q.n)&(len(q.ring)-1)] = c
	q.n++
	q.bytes += int(c.size)
}

// pop takes n from the front and appends them to into.
func (q *queue) pop(into []*command, n int) []*command {
	for range n {
		c := q.ring[q.first]
		into = append(into, c)
		q.bytes -= int(c.size)
		q.ring[q.first] = nil
		q.first = (q.first + 1) & (len(q.ring) - 1)
	}
	q.n -= n
	return into
}

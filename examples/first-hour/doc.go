// Package firsthour tests README.md, which builds a service step by step: the test does what the page says, in an empty
// folder, and compares the outputs with the outputs on the page.
package firsthour

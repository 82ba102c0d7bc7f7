// Package httpcall serves HTTP requests under the rules of their route, for any
// router: what ginlock and httplock have in common. An application uses those; an
// adapter of another router is a [Router], the endpoints of an [aspect.Registry], and
// a call of [Serve].
//
// It reads the variables of package httpvars, keeps a body and a response back where
// that is needed, and answers: RFC 9457 problem documents, Retry-After, and the headers
// [failpolicy.StatusHeader] and [failpolicy.TokenHeader]. A request whose client is gone shows as 499 in
// access logs and is answered with 503 without a body, should somebody read it. No answer
// contains a key, an owner or a text of Redis.
package httpcall

// Package httpcall is not stable: what ginlock and httplock have in common, which serves
// HTTP requests under the rules of their route for any router. It changes with them in any
// release. An application uses those two. An adapter of another router puts its handlers
// behind httplock, or is a [Router], the endpoints of an [aspect.Registry], and a call of
// [Serve], and then names one version of this module.
//
// It reads the variables of a request, keeps a body and a response back where
// that is needed, and answers: RFC 9457 problem documents, Retry-After, and the headers
// [failpolicy.StatusHeader] and [failpolicy.TokenHeader]. A request whose client is gone shows as 499 in
// access logs and is answered with 503 without a body, should somebody read it. No answer
// contains a key, an owner or a text of Redis.
package httpcall

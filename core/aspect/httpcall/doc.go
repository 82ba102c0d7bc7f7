// Package httpcall serves HTTP requests under the rules of their routes, for any router. Packages ginlock and httplock are
// built on it. It is not stable: it changes with them in any release. Applications use those two packages. An adapter for
// another router can wrap its handlers with httplock. Otherwise it keeps its routes in an [aspect.Registry] and calls
// [Serve] for each request. It then has to require one exact version of this module.
//
// For each request, an adapter fills in a [Call], calls Serve once, and carries out the [Result]. Package httpcall reads
// the variables of the request. It keeps bodies and responses in memory where a rule needs that. It writes the answers of
// the guard: RFC 9457 problem documents, Retry-After, and the headers [failpolicy.StatusHeader] and
// [failpolicy.TokenHeader]. It does not depend on how a router matches routes or stores its context.
//
// If the client has left, access logs show status 499. The answer has status 503 and no body, because a client that closed
// only its side of the connection still reads it. No answer contains a key, an owner, or a message from Redis.
package httpcall

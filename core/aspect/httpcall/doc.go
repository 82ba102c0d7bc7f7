// Package httpcall serves HTTP requests under the rules of their routes, for any router. Packages ginlock and httplock are
// built on it, and applications use these two packages. The API of httpcall is not stable: any release may change it. An
// adapter for another router can wrap the handlers of that router with httplock. If that is not possible, the adapter keeps
// its routes in an [aspect.Registry] and calls [Serve] for each request, and its go.mod has to require one exact version
// of this module.
//
// For each request, an adapter fills in a [Call], calls Serve once, and carries out the [Result]. Package httpcall reads
// the variables of the request. It keeps bodies and responses in memory where a rule needs that. If a request is refused,
// httpcall writes the answer: RFC 9457 problem documents, Retry-After, and the headers [failpolicy.StatusHeader] and
// [failpolicy.TokenHeader]. It does not depend on how a router matches routes or stores its context.
//
// If the client has disconnected, access logs show status 499. The answer that is sent is a 503 with Retry-After, because
// a client that closed only its sending side may still read it. No answer that httpcall writes contains a key, an owner, or a
// message from Redis.
package httpcall

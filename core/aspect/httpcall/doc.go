// Package httpcall serves HTTP requests under the rules of their routes, for any router. Packages ginlock and
// httplock are built on it. It is not stable: it changes with them in any release. Applications use those two
// packages. An adapter for another router either wraps its handlers with httplock, or keeps its routes in an
// [aspect.Registry] and calls [Serve] for each request; such an adapter has to require one exact version of
// this module.
//
// An adapter describes a request as a [Call], calls Serve once, and carries out the [Result]. Package httpcall
// reads the variables of the request, holds a body and a response back where a rule needs that, and writes
// the answers of the guard: RFC 9457 problem documents, Retry-After, and the headers [failpolicy.StatusHeader]
// and [failpolicy.TokenHeader]. It does not depend on how a router matches routes or stores its context.
//
// If the client has left, access logs show status 499. The answer then has status 503 and no body, because a
// client that closed only its side of the connection still reads it. No answer contains a key, an owner or a message of
// Redis.
package httpcall

// Package keyexpr compiles the key templates of lock rules and evaluates them
// for one request.
//
// A template is literal text with #{expression} parts. The expressions are a small part of the
// language of expr-lang:
//
//	template                                            yields
//	order:pay:#{path.orderId}                           a path parameter
//	order:#{query.id}                                   a query parameter; repeated ones are an error: query.id[0] picks one
//	tenant:#{header["X-Tenant"]}:order:#{path.orderId}  a header, in any case
//	order:#{body.order.id}                              a field of the JSON body, of up to 1 MiB; the handler still gets all of it
//	session:#{cookie.session}                           also form.id, method, route, client_ip
//	order:pay:#{req.order_id}                           a field of the gRPC request, by its name in the .proto file
//	tenant:#{metadata["x-tenant"]}                      gRPC metadata; also method, peer
//	order:pay:#{in.OrderID}                             a field of a function's argument, by its Go name
//	shard:#{query.shard ?? "0"}                         a default for a missing value
//	inventory:deduct:#{map(body.items, .sku)}           one key for each element, at most 100
//	user:#{lower(query.email)}                          a function; see below for all of them
//
// Adapters add variables, such as the authenticated user: #{user.Tenant} (WithVariable of
// packages ginlock and grpclock).
//
// A condition (the field when of a rule) is one expression without #{}. The rule takes the lock
// only if the condition is true. See [CompileCondition].
//
// [Compile] checks a template against a [Schema], which holds the variables of an adapter. It
// reports every problem with its position and the nearest valid name. [Argument] builds the
// schema of a function's argument.
//
// The notations of other languages, such as #orderId, ${path.id} and {{id}}, are errors that show
// what to write instead. So are a template without parts that names a variable with a field, such as
// order:path.id, and a stray } after a part, as in o:#{path.id}}. Write #{"path.id"}, #{"}"} and
// #{"#{"} for such literal text.
//
// # The language
//
// This table is complete. Each function and operator reads its operands once.
//
//	name.field name["field"] name[0] name[-1]   one value; names and indexes are literal
//	text[2:] list[:3] value[:]                  a part of a text (bytes) or a list; [:] of a value is all of them
//	"text" 42 1.5 true nil ["a", "b"]           literals
//	a ?? b                                      a, or b if a is missing
//	condition ? a : b                           and or not && || !
//	== != < <= > >=                             0 < a < 9 works, too
//	a in list, "name" in map                    not in
//	+ - * / %                                   + also joins texts; / is a float
//	lower(text) upper(text) trim(text)          trim removes white space at both ends
//	nfc(text)                                   one form of letters with accents (Unicode NFC)
//	string(value) int(value)                    the text of a value; the integer of a text
//	len(value) keys(map)                        characters of a text, elements of a list or map
//	first(list) last(list)                      missing if the list is empty
//	split(text, ",")                            the separator is literal
//	map(list, .sku) filter(list, .n > 1)        # is the element, .sku a field of it
//	any(list, # == "a") all(list, .ok)          a predicate cannot contain another predicate
//
// Package expr has more notations for some of these: a?.b is a.b, x | lower() is lower(x), and a
// predicate may have braces around it. Literals and comments are written as in expr.
//
// Everything else is an error at start-up. The error shows the notation of this language, or
// advises that the program compute the value, in a registered variable (WithVariable) or in a
// field of a function's argument. An error suggests an expression only if the expression compiles
// in its place. No suggestion turns a part into a comparison, because all requests would then
// share two locks.
//
// These limits hold for every request, whatever the load of the machine:
//
//   - A text that a function or + takes or returns, or that becomes part of a key, has at most 4
//     KiB.
//   - A list has at most 1,000 elements.
//   - The expressions of one template or condition together compute with at most 256 KiB of text.
//
// A request that exceeds a limit fails with an [EvalError], for [ReasonTooLong] or
// [ReasonTooMany]. Within the limits, the worst request takes less than 10 ms of CPU time and 2
// MiB of memory.
//
// # Which key
//
// The convention is module:operation:id, after the prefix of the service
// (core.WithPrefix): shop:order:pay:42.
//
//   - Name the thing that two calls must not change at the same time, not the endpoint. If paying
//     and cancelling an order must exclude each other, both rules need the same key, such as
//     order:#{path.orderId}.
//   - Make the key as fine as possible and as coarse as needed. A key without a part is one lock
//     for all requests: right for a nightly job, wrong for a route. A key with a unique request id
//     excludes no other request.
//   - Take ids from one source. 42, 042 and ORD-42 are three locks. Convert in one place.
//   - A catch-all keeps its slashes. /files/*path of gin yields /a/b, /files/{path...} of
//     net/http yields a/b, and a/b/ is another key.
//   - Give each service one prefix. No prefix may begin with another one. With shop: and shop:a:
//     on one Redis, key a:order:42 of the first is key order:42 of the second.
//   - For several resources, write several templates or one part that yields a list. The rule
//     takes all locks together or none, always in the same order, so two such calls do not
//     deadlock.
//   - A client that chooses the key chooses the lock. A header always has the value that the
//     client sent. client_ip comes from the router, which often takes it from a header of the
//     client. Prefer values that authentication has established.
//
// # Values
//
// A part is a string, a bool, an integer or an enum. Floats, objects and byte slices are refused:
// by the compiler if it knows the type, otherwise by an [EvalError].
//
// A missing, null or empty value is an EvalError too, so it never becomes one lock for all
// clients. Some types cannot tell "not set" from zero: a proto3 field without presence, and a Go
// field that is not a pointer. There, an integer or enum of zero counts as missing. Write
// #{req.shard ?? 0} if zero is a value. A bool that is false is not missing. The left side of ??
// and the operands of a comparison with nil may be missing.
//
// A value has one text, whatever its spelling:
//
//	string                      the string; white space at its ends is an error, trim(…) removes it
//	bool                        true, false
//	integer                     decimal, exact
//	time.Time                   its instant in UTC, such as 2006-01-02T15:04:05.5Z
//	time.Duration               its nanoseconds, an integer
//	Timestamp, Duration         the protobuf messages: like time.Time and time.Duration
//	encoding.TextMarshaler      its text; if that is a time with a zone, like time.Time
//	another named Go type       like the type under it; a String method is not called
//	client_ip, peer, netip.Addr as netip.Addr writes it; ::ffff:192.0.2.1 is 192.0.2.1, also with
//	                            the port of a netip.AddrPort
//	header.Host, :authority     in lower case
//
// Conditions see the same texts. Compile and CompileCondition refuse a literal text that such a
// value never has, because every comparison with that text would have the same result:
// req.level == "WRAM", in.At == "2006-01-02T16:04:05+01:00", client_ip == "2001:DB8::1".
// The operators <, <=, > and >= compare times as instants. A text in an untyped body, a path, a
// query or a header stays as the client wrote it, even if it is a time. Give the body a type to
// compare times in it.
//
// Expressions compare texts byte by byte. A database may ignore case, blanks or accents: there,
// "Anna", "anna" and "Änna" can be one row, and é can be one or two characters. Such texts are
// different keys. Write lower(…) if case does not matter, nfc(…) if é is one letter, int(…) if 042
// and 42 are one number, and prefer the id of the row in the database. An invisible character such
// as U+200B is an error at start-up in literal text, and percent-encoded in a value.
//
// Integers are exact: 2^53+1 in a JSON body stays 2^53+1. A JSON number is an integer if it is
// written as one: 5.0, 5e0 and -0 are refused like 0.5, because handlers disagree about their text
// (5 or 5.0). A float64 in a Go value of unknown type, such as a claim, counts as an integer if it
// is a whole number below 2^53. Computed integers have 64 bits and wrap around as in Go: with
// body.n * 4096 a client can choose two numbers that make one key.
//
// A part whose static type is a list yields one key for each element. Write [:] after a value of
// unknown type, or after a repeated request value, to make it a list: #{body.ids[:]}, #{query.id[:]}.
//
// # HTTP requests
//
// It is an error if a request repeats a query, header, cookie or form value: query.id[0] picks
// one, query.id[:] takes all of them. Handlers disagree about names: fiber and echo also read ID
// for id, go-zero and fiber id[] for id, and fiber a[b] for a.b. So it is also an error if a
// query, cookie or form value is given by a name that differs from the name in the expression
// only in case, brackets or dots, whether or not the name itself is given, too.
//
// Values are decoded once: %34%32, + for a blank and the quotes of a cookie do not lead to
// another key. header.Host is in lower case, with its port. A handler's parser may read several
// texts as one value (true, TRUE and 1; 42 and 042; a UUID in two cases). These are different
// keys: write lower(query.id) or int(query.id), or give the body a type.
//
// form contains the values that a handler finds in PostForm after net/http or gin's PostForm
// parsed the form: the values of a urlencoded body under POST, PUT and PATCH only, and the values
// of a multipart body under any method. A urlencoded body of a GET or DELETE has no such values
// and is not read. If a middleware parsed the form earlier, that form counts. form never contains
// the query.
//
// Many handlers merge places. For each, some value of another place counts before the value in the
// key, or instead of it if the key has a default:
//
//	http.Request.FormValue, gin's ShouldBind        a form before the query
//	httpx.Parse of go-zero                          a form before the query; a JSON body before all if
//	                                                the field has that tag too, or no tag
//	c.FormValue of fiber                            the query before the form
//	c.Bind().All of fiber                           the path, the body, the query, headers, cookies
//	c.Bind of echo                                  a body before the query (GET, DELETE), and both
//	                                                before the path
//
// It is an error if an expression uses form.id and the query has id, too. Such a handler therefore
// reads the values in a key over form. The opposite is not checked, because a key over the query or
// the path does not read the body: behind such a key, let the handler read the same place only, as
// with r.URL.Query or gin's ShouldBindQuery. If it cannot, let it call core.MustHold with the name
// of the lock for the value that it uses. MustHold panics if the request holds another lock.
//
// client_ip is as trustworthy as its source in the router. By default, Gin trusts every proxy: any
// client can then choose its address, and thereby the lock, with a header. List the real proxies
// with Engine.SetTrustedProxies. On a Unix socket client_ip and peer are missing, because all
// clients of a socket have the same address.
//
// A body is read only if an expression uses it, up to 1 MiB (WithMaxBody). The adapter replaces
// the request's Body so that the handler still reads all of it. A request has a body if the body
// has at least one byte, whatever the Content-Length. JSON needs a JSON content type
// (application/json or any +json), UTF-8, and nothing after the value. A body, typed or not, is
// refused if one object contains a name twice, even in another case, because handlers disagree
// about which value counts. A request without a body has no value for body and form.
//
// A typed body is decoded as encoding/json decodes it for the handler. A time.Time in the body is
// its instant in UTC, whatever its zone. From an untyped body, an expression reads the values that
// a handler gets by decoding the body into a struct with encoding/json, or the request is refused:
//
//   - The case of names does not matter, however an expression uses an object: body.id, "id" in
//     body and (body.order ?? body).id find ID. (Only a handler with two fields whose names differ
//     only in case distinguishes them.) keys returns the names if all are in lower case, and
//     refuses an object with any other name.
//   - Objects are not compared, by == or in: compare their fields.
//   - The number 42 and the string "42" are one id, whose text is the key. Comparing one with
//     the other is refused: write string(body.id) == path.id.
//
// Some handlers see fewer ids than there are keys. A handler that decodes an id into a float64,
// or into any without UseNumber, reads 2^53 and 2^53 + 1 as one id, although they have two keys.
// A handler whose field has the option ,string reads "042" and "42" as one id. Pass the handler's
// type to WithBody, with an int64 or a string instead of the float64: then the key contains the
// ids that the handler sees.
//
// # gRPC calls
//
// It is an error if a request repeats a metadata value: metadata.id[0] picks one, metadata.id[:]
// takes all of them. Fields of messages have these texts besides the ones above:
//
//	enum               the value's name, the first one if it has aliases; its number if it has no
//	                   name. An alias or an unknown name in a condition is an error at start-up
//	bytes              lower-case hexadecimal, even if they hold text: 3432 for the bytes "42".
//	                   JSON writes bytes in base64: use a string for an id that occurs in both
//	Timestamp          an instant, and a message: req.at and req.at.seconds
//	message, wrappers  their fields: req.note.value; unset is missing
//	repeated           a list: req.ids, map(req.items, .sku), req.items[0].sku
//	map                req.labels.k, req.labels["k"]; absent is missing
//
// Presence: an unset message, optional field or member of a oneof is missing. A proto3 field
// without presence that holds an empty string, an integer zero or the enum's zero counts as
// missing; req.shard ?? 0 accepts the zero. false is a value. The value field of a wrapper that is
// set may be zero. A Timestamp or Duration that is not valid is missing.
//
// A field with a default in proto2 or an edition is never missing: like its getter, it yields the
// default, even if the message around it is unset. Only req.shard == nil shows that the field is
// unset. In a condition, an unset enum has the value that its getter returns: the first one.
//
// # Keys
//
// The text of a value is its identity. 42 in a path, a query or a header, 42 and
// "42" in a JSON body, an int64 of a message or an argument and a constant in the
// template are one key. So are true and "true", and an enum and its name.
//
// Two requests whose parts have different texts get different keys from one template. In a value,
// these are percent-encoded: the colon, the percent sign, braces, every character that is not
// printable, bytes that are not UTF-8, and the first character of the literal text after the part.
// The result of a concatenation is one value: write #{a}-#{b} rather than #{a + "-" + b}, so that
// each is encoded. An operand that is a literal text with a colon is the exception: it becomes
// literal text of the key, so #{"order:" + a} is order:#{a}. A key longer than the limit keeps its
// head and ends in a hash. Under [Format].Strict, encoding and shortening are errors instead.
//
// Only colons keep the keys of two templates apart: a key has the colons of its template, and no
// value adds one. A field is the text between two colons. A value may equal the text that another
// template has in the same field. With the value 7-12, seat:#{path.id} yields the key of
// seat:#{path.row}-#{path.seat} with 7 and 12; with the value all, it yields the key of the
// template seat:all. Such requests wait for each other. If templates must not share keys, give
// each a literal field, such as seat:id:#{path.id} and seat:place:#{path.row}:#{path.seat}, and
// separate values by colons.
//
// # Safety
//
// Operators write expressions, and clients send values. The size of a template, the nodes of an
// expression, the length of a key, the number of elements and the text that an expression computes
// with are limited. If a list of messages or Go values has more than 1,000 elements, expressions
// can only index it. In a map of that size, they can only look up an entry. The cost of producing
// a variable, such as decoding a body, is not counted, because a body has a separate limit.
//
// Compiled templates and conditions are immutable and safe for concurrent use.
package keyexpr

// The files of this package, from the text to the key. Each uses only files above it in the list.
//
//	errors, limits, encode         problems, bounds, and the bytes of a key
//	types, texts, values, json     static types, values at run time, and documents that become values
//	gotypes, schema                the types of Go values, and the variables of an adapter
//	parse, syntax                  text → segments of a template → syntax trees (package expr)
//	access, evaluation             reading a reference for one request; the state of an evaluation
//	operators, functions           the nodes that a compiled expression consists of
//	names, reference, part         names that a user meant; references; values that a key can contain
//	check, suggest                 syntax tree → nodes: types, missing values; suggestions that compile
//	habits                         notations of other languages → this language
//	template                       nodes + request → key
//	compile                        all of this in order: [Compile], [CompileCondition]

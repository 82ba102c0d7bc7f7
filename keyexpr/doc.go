// Package keyexpr compiles the key templates of lock rules and evaluates them
// for one request.
//
// A template is literal text with #{expression} parts, in a small part of the language of
// expr-lang:
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
// A condition, when of a rule, is such an expression by itself, without #{}: the lock is taken
// only where it is true. See [CompileCondition].
//
// [Compile] checks a template against a [Schema], the variables that an adapter
// offers, and reports every problem with its position and the nearest valid
// name. [Argument] builds the schema of a function's argument.
//
// What is written in the way of another language is an error with what to write instead:
// #orderId, ${path.id}, {{id}}.
//
// # The language
//
// This is all of it. Each function and operator looks once at what it takes.
//
//	name.field name["field"] name[0] name[-1]   one value; names and indexes are literal
//	text[2:] list[:3] value[:]                  a part of a text (bytes) or a list; [:] of a value is all of them
//	"text" 42 1.5 true nil ["a", "b"]           literals
//	a ?? b                                      where a is missing, it is b
//	condition ? a : b                           and or not && || !
//	== != < <= > >=                             0 < a < 9 works, too
//	a in list, "name" in map                    not in
//	+ - * / %                                   + also joins texts; / is a float
//	lower(text) upper(text) trim(text)          trim takes white space off the ends
//	nfc(text)                                   one form of letters with accents (Unicode NFC)
//	string(value) int(value)                    the text of a value; the integer of a text
//	len(value) keys(map)                        of a text, in characters, of a list or a map
//	first(list) last(list)                      missing where the list is empty
//	split(text, ",")                            the separator is literal
//	map(list, .sku) filter(list, .n > 1)        # is the element, .sku a field of it
//	any(list, # == "a") all(list, .ok)          a predicate does not stand inside of another
//
// What package expr reads as the same is the same: a?.b is a.b, x | lower() is lower(x), a predicate may
// have braces around it, and literals and comments are written as in expr.
//
// What is not here is an error at start-up, with what is here for it, or with the advice to
// register a variable: a Go function of the program computes the value then.
//
// A text that a function or + takes or makes, or that becomes part of a key, has at most 4 KiB,
// a list at most 1,000 elements, and the expressions of one template or condition compute with at
// most 256 KiB of text together. A request beyond is an [EvalError] with [ReasonTooLong] or
// [ReasonTooMany], whatever the load of the machine is. Within, the worst request takes less
// than 10 ms of CPU time and 2 MiB of memory.
//
// # Which key
//
// The convention is module:operation:id, in front of it the service's prefix
// (core.WithPrefix): shop:order:pay:42.
//
//   - Name what must not change twice at the same time, not the endpoint. If paying and
//     cancelling an order must exclude each other, both rules need the same key, such as
//     order:#{path.orderId}.
//   - As fine as possible, as coarse as needed. A key without a part is one lock for all
//     requests: right for a nightly job, wrong for a route. A key with the id of the request
//     locks nothing.
//   - Ids from one source. 42, 042 and ORD-42 are three locks. Convert in one place.
//   - A catch-all keeps its slashes. /files/*path of gin yields /a/b, /files/{path...} of
//     net/http yields a/b, and a/b/ is another key.
//   - One prefix per service, and none inside another. With shop: and shop:a: on one Redis,
//     key a:order:42 of the first is key order:42 of the second.
//   - Several resources: several templates, or one part that yields a list. All locks are
//     taken together or none, in one order, so that two such calls do not deadlock.
//   - Who may choose the key may choose the lock. client_ip is the router's, and often as
//     the client says it; a header is always the client's. Prefer what authentication found.
//
// # Values
//
// A part is a string, a bool, an integer or an enum. Floats, objects and byte
// slices are refused, by the type checker where the type is known and by an
// [EvalError] where it is not. A missing, null or empty value is an EvalError
// too: it never becomes one lock for everybody. Where a type cannot tell "not
// set" from zero (a proto3 field without presence, a Go field that is no
// pointer) an integer or enum of zero counts as missing; write
// #{req.shard ?? 0} where zero is a value. A bool is never missing for being
// false. The left side of ?? and comparisons with nil may be missing.
//
// A value has one text, however it is spelled:
//
//	string                      itself; white space at its ends is an error, trim(…) removes it
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
// Conditions see the same texts. Compile and CompileCondition refuse a literal text that such
// a value never has, because a comparison with it would always have one result:
// req.level == "WRAM", in.At == "2006-01-02T16:04:05+01:00", client_ip == "2001:DB8::1".
// Times are compared by <, <=, > and >= as instants. A text in an untyped body, a path, a
// query or a header stays as the client wrote it, also if it is a time: give the body a type.
//
// Texts are compared byte by byte. A database may fold case, blanks or accents: for it,
// "Anna", "anna" and "Änna" can be one row, and é can be one or two characters. Such texts
// are different keys. Write lower(…) where case does not matter, nfc(…) where é is one letter,
// int(…) where 042 and 42 are one number, and prefer the id that the database has for the row.
// Literal text that cannot be seen, such as U+200B, is an error at start-up; in a value it is
// percent-encoded.
//
// Integers are exact: 2^53+1 in a JSON body stays 2^53+1. A JSON number is an integer if it is
// written as one: 5.0, 5e0 and -0 are refused like 0.5, because handlers disagree about their
// text (5 or 5.0). A float64 in a Go value of unknown
// type, such as a claim, is the integer that it holds exactly, below 2^53. What an
// expression computes has 64 bits and wraps around as in Go: with body.n * 4096 the
// client chooses two numbers that make one key.
//
// A part whose static type is a list yields one key per element. A value whose
// type is unknown, and a repeated request value, becomes a list by writing
// [:] after it: #{body.ids[:]}, #{query.id[:]}.
//
// # HTTP requests
//
// A query, header, cookie or form value that a request repeats is an error:
// query.id[0] picks one, query.id[:] takes all of them.
//
// Values are decoded once: %34%32, + for a blank and the quotes of a cookie make no other
// key. header.Host is in lower case, with its port. A handler's own parser may take several
// texts for one value (true, TRUE and 1; 42 and 042; a UUID in two cases). These are different
// keys: write lower(query.id) or int(query.id), or give the body a type.
//
// form is what a handler finds in PostForm when net/http, or gin's PostForm, has
// parsed the form: the values of a urlencoded body under POST, PUT and PATCH only, and
// of a multipart body under any method. A urlencoded body of a GET or DELETE has none,
// and is not read. A form that a middleware has parsed before is the one that counts.
// form never has the query. A handler that merges the two (http.Request.Form and
// FormValue, gin's ShouldBind, which under GET reads the query only) may get a value
// that form does not have: let it read PostForm where a condition or a ?? depends on
// form.
//
// client_ip is as trustworthy as what the router takes it from. Gin's default is to
// trust every proxy: any client then chooses its address by a header, and with it the
// lock. Engine.SetTrustedProxies names the proxies that there are.
//
// A body is read only if an expression uses it, at most 1 MiB of it (WithMaxBody), and the
// request's Body is replaced so that the handler still reads all of it. A body is there if it
// has bytes, whatever length was announced. JSON needs a JSON content type (application/json or
// any +json), UTF-8 and nothing after the value. A body that has a name twice in one object,
// also in another case, is refused, typed or not, because handlers disagree about which value
// counts. A request without a body has no value for body and form.
//
// A typed body is decoded as encoding/json would do it for the handler: a time.Time in it is
// its instant in UTC, whatever its zone. Of an untyped one an expression sees the same as a
// handler that decodes it with encoding/json into a struct, or the request is refused:
//
//   - The case of names does not matter, whatever the expression does with an object:
//     body.id, "id" in body and (body.order ?? body).id find ID. (Only a handler with two
//     fields that differ in nothing else tells them apart.) keys gives names that are in lower
//     case; others are refused.
//   - Objects are not compared, by == or in: compare their fields.
//   - The number 42 and the string "42" are one id, whose text is the key. Comparing the
//     one with the other is refused: write string(body.id) == path.id.
//
// A handler that decodes an id into a float64, or into any without UseNumber, takes 2^53
// and 2^53 + 1 for one id, which have two keys. One whose field has the option ,string
// takes "042" and "42" for one. Neither loses anything that the key does not where WithBody
// has the type of the handler, with an int64 or a string in the place of the float64.
//
// # gRPC calls
//
// A metadata value that a request repeats is an error: metadata.id[0] picks one, metadata.id[:]
// takes all of them. Fields of messages have these texts besides the ones above:
//
//	enum               the value's name, of aliases the first; the number if it has no name.
//	                   Another name and an alias in a condition are errors at start-up
//	bytes              lower-case hexadecimal, also where they hold text: 3432 for the bytes
//	                   "42". JSON has base64: use a string for an id that both have
//	Timestamp          an instant, and a message: req.at and req.at.seconds
//	message, wrappers  their fields: req.note.value; unset is missing
//	repeated           a list: req.ids, map(req.items, .sku), req.items[0].sku
//	map                req.labels.k, req.labels["k"]; absent is missing
//
// Presence: an unset message, optional field or member of a oneof is missing. A
// proto3 field without presence that holds an empty string, an integer zero or
// the enum's zero counts as missing; req.shard ?? 0 admits the zero. false is a
// value. The value field of a wrapper that is set may be zero. A Timestamp or Duration that
// is not valid is missing.
//
// A field with a default in proto2 or an edition is never missing: it has the default, as in
// its getter, also where the message around it is unset. Only req.shard == nil shows that it
// is unset. In a condition an unset enum is what its getter returns: the first value.
//
// # Keys
//
// The text of a value is its identity. 42 in a path, a query or a header, 42 and
// "42" in a JSON body, an int64 of a message or an argument and a constant in the
// template are one key; so are true and "true", and an enum and its name.
//
// Two requests whose parts have different texts get different keys of one template. In a
// value the colon, the percent sign, braces, everything that is not printable, bytes that
// are not UTF-8, and the first character of the literal that follows the part are
// percent-encoded. What an expression concatenates by itself is one
// value: write #{a}-#{b} rather than #{a + "-" + b}, so that each is encoded. Only a text
// with a colon that a part adds is literal text: #{"order:" + a} is order:#{a}. A key
// longer than the limit keeps its head and ends in a hash.
// Under [Format].Strict all of these are errors instead.
//
// Between templates only the colon is protected: a key has the colons of its template, and
// no value adds one. Within a field, which is what stands between colons, a value may spell
// what another template writes there: with 7-12, seat:#{path.id} is the key of
// seat:#{path.row}-#{path.seat} with 7 and 12, and with all it is seat:all. Such requests
// wait for each other. Give templates that must not meet a literal field of their own, such
// as seat:id:#{path.id} and seat:place:#{path.row}:#{path.seat}, and part values by colons.
//
// # Safety
//
// Expressions are written by the operator, values come from clients. The size of a template, the
// nodes of an expression, the length of a key and the number of elements are bounded, as is what
// an expression computes with. A list of messages or Go values that has more than 1,000 elements
// can only be indexed, such a map only be asked for an entry. What variables cost that are only
// referred to is not counted: a body has its limit.
//
// Compiled templates and conditions are immutable and safe for concurrent use.
package keyexpr

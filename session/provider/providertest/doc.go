// Package providertest holds what the tests of every model adapter share: Server, a double of a provider's endpoint that follows a script
// down to single bytes, cuts and silences; Strict, which reads a request as the strictest provider does; Wire, how a family of providers
// says things; and Run, the suite every session.Model over HTTP passes.
//
// A Server owns one goroutine that accepts and one per connection. All end with Close, which a test's cleanup calls.
package providertest

package httpapi

import (
	_ "embed"
	"net/http"
)

// openAPI describes every route; a test holds it against the routes and against what they answer.
//
//go:embed openapi.json
var openAPI []byte

func (x *exchange) describeAPI() error { return x.write(http.StatusOK, "application/json", openAPI) }

package frame

import "strconv"

// Append adds a frame holding body to dst.
func Append(dst []byte, how Framing, body []byte) []byte {
	if how == Headers {
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, int64(len(body)), 10)
		dst = append(dst, "\r\n\r\n"...)
		return append(dst, body...)
	}
	dst = append(dst, body...)
	return append(dst, '\n')
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/httphead.h"

#include <string.h>
#include <strings.h>

#include "common/scope.h"

#define SCHEME "http://"
#define SCHEME_BYTES (sizeof(SCHEME) - 1)
#define HTTP_PORT 80

int httphead_size(const char *data, size_t scanned, size_t size)
{
	const char *from = data + scanned;
	const char *end = NULL;

	while ((end = memchr(from, '\n', size - (size_t)(from - data)))) {
		size_t at = (size_t)(end - data);

		if (at == 0 || data[at - 1] != '\r')
			return -1;
		if (at >= 3 && data[at - 2] == '\n')
			return (int)at + 1;
		from = end + 1;
	}
	return 0;
}

static int refuse(struct error *err, const char *why)
{
	return error_set(err, ERR_INVALID, 0, "%s", why);
}

/* RFC 9110: the characters of methods and field names. */
static bool is_token_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || (byte && strchr("!#$%&'*+-.^_`|~", byte));
}

static bool is_token(struct http_piece piece)
{
	for (size_t i = 0; i < piece.size; i++)
		if (!is_token_byte(piece.text[i]))
			return false;
	return piece.size > 0;
}

static bool is_named(struct http_piece piece, const char *name)
{
	return piece.size == strlen(name) && strncasecmp(piece.text, name, piece.size) == 0;
}

static struct http_piece trimmed(struct http_piece piece)
{
	while (piece.size > 0 && (piece.text[0] == ' ' || piece.text[0] == '\t')) {
		piece.text++;
		piece.size--;
	}
	while (piece.size > 0 &&
	       (piece.text[piece.size - 1] == ' ' || piece.text[piece.size - 1] == '\t'))
		piece.size--;
	return piece;
}

/* The bytes up to END, taken off REST together with END; false when it is not there. */
static bool take_until(struct http_piece *rest, const char *end, struct http_piece *ret_piece)
{
	const char *at = memmem(rest->text, rest->size, end, strlen(end));

	if (!at)
		return false;
	ret_piece->text = rest->text;
	ret_piece->size = (size_t)(at - rest->text);
	rest->size -= ret_piece->size + strlen(end);
	rest->text = at + strlen(end);
	return true;
}

/* A line without its CRLF: no other end of line, no control byte but the tab. */
static const char *line_refusal(struct http_piece line)
{
	for (size_t i = 0; i < line.size; i++) {
		unsigned char byte = (unsigned char)line.text[i];

		if (byte == '\r' || byte == '\n')
			return "a line does not end with CR LF";
		if ((byte < ' ' && byte != '\t') || byte == 0x7f)
			return "a control byte";
	}
	return NULL;
}

static int parse_target(struct http_piece target, struct http_head *head, bool *ret_bad_host,
			struct error *err)
{
	struct http_piece authority = target;
	int r = 0;

	for (size_t i = 0; i < target.size; i++)
		if ((unsigned char)target.text[i] <= ' ' || (unsigned char)target.text[i] >= 0x7f)
			return refuse(err, "the target has blanks or bytes outside ASCII");
	if (!head->connect) {
		if (target.size < SCHEME_BYTES ||
		    strncasecmp(target.text, SCHEME, SCHEME_BYTES) != 0)
			return refuse(err, "only CONNECT and http:// URLs are served");
		if (memchr(target.text, '#', target.size))
			return refuse(err, "a fragment in the URL");
		authority.text += SCHEME_BYTES;
		authority.size -= SCHEME_BYTES;
		head->path = authority;
		while (head->path.size > 0 && head->path.text[0] != '/' &&
		       head->path.text[0] != '?') {
			head->path.text++;
			head->path.size--;
		}
		authority.size -= head->path.size;
	}
	r = hostname_parse_authority(authority.text, authority.size, head->connect ? 0 : HTTP_PORT,
				     &head->host, &head->port, err);
	if (r < 0)
		*ret_bad_host = true;
	return r;
}

static int parse_request_line(struct http_piece line, struct http_head *head, bool *ret_bad_host,
			      struct error *err)
{
	struct http_piece target;
	const char *why = line_refusal(line);

	if (why)
		return refuse(err, why);
	if (!take_until(&line, " ", &head->method) || !take_until(&line, " ", &target) ||
	    !is_token(head->method))
		return refuse(err, "the first line is no request");
	if (line.size != 8 || memcmp(line.text, "HTTP/1.", 7) != 0 ||
	    (line.text[7] != '0' && line.text[7] != '1'))
		return refuse(err, "only HTTP/1.0 and HTTP/1.1 are understood");
	head->minor = line.text[7] - '0';
	/* Methods have a case: "connect" is one that nobody knows. */
	head->connect = head->method.size == 7 && memcmp(head->method.text, "CONNECT", 7) == 0;
	if (!head->connect && is_named(head->method, "connect"))
		return refuse(err, "CONNECT is written in capitals");
	return parse_target(target, head, ret_bad_host, err);
}

static int parse_length(struct http_piece value, uint64_t *ret_length, struct error *err)
{
	uint64_t length = 0;

	if (value.size == 0 || value.size > 18)
		return refuse(err, "a Content-Length that is no number, or too large");
	for (size_t i = 0; i < value.size; i++) {
		if (value.text[i] < '0' || value.text[i] > '9')
			return refuse(err, "a Content-Length that is no number, or too large");
		length = length * 10 + (uint64_t)(value.text[i] - '0');
	}
	*ret_length = length;
	return 0;
}

/* The Host field says where the first line says. */
static int check_host(const struct http_head *head, struct http_piece value, struct error *err)
{
	struct hostname host;
	uint16_t port = 0;

	/* Clients leave the port of a CONNECT away here; it is nowhere passed on. */
	if (hostname_parse_authority(value.text, value.size, head->connect ? head->port : HTTP_PORT,
				     &host, &port, err) < 0)
		return refuse(err, "the Host field cannot be read");
	if (strcmp(host.name, head->host.name) != 0 || port != head->port)
		return refuse(err, "the Host field names another host than the first line");
	return 0;
}

/* Fields that are between a client and its proxy. */
static bool is_for_us(struct http_piece name)
{
	static const char *const names[] = {
		"Connection", "Close",   "Keep-Alive", "TE",
		"Trailer",    "Upgrade", "Host",       "HTTP2-Settings",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (is_named(name, names[i]))
			return true;
	return name.size >= 6 && strncasecmp(name.text, "Proxy-", 6) == 0;
}

static int parse_field(struct http_piece line, struct http_head *head, struct error *err)
{
	struct http_field *field = &head->fields[head->field_count];
	const char *why = line_refusal(line);
	int r = 0;

	if (why)
		return refuse(err, why);
	if (head->field_count == ARRAY_SIZE(head->fields))
		return refuse(err, "too many fields");
	if (line.size > 0 && (line.text[0] == ' ' || line.text[0] == '\t'))
		return refuse(err, "a folded line");
	if (!take_until(&line, ":", &field->name) || !is_token(field->name))
		return refuse(err, "a field without a proper name");
	field->value = trimmed(line);
	field->dropped = is_for_us(field->name);
	head->field_count++;

	if (is_named(field->name, "Host")) {
		if (head->has_host)
			return refuse(err, "two Host fields");
		head->has_host = true;
		return check_host(head, field->value, err);
	}
	if (is_named(field->name, "Content-Length")) {
		if (head->body != HTTP_BODY_NONE)
			return refuse(err, "a Content-Length too many");
		r = parse_length(field->value, &head->length, err);
		head->body = HTTP_BODY_LENGTH;
	} else if (is_named(field->name, "Transfer-Encoding")) {
		if (head->body != HTTP_BODY_NONE || head->minor == 0)
			return refuse(err, "a Transfer-Encoding beside a Content-Length, twice, or "
					   "in HTTP/1.0");
		if (!is_named(field->value, "chunked"))
			return refuse(err, "a Transfer-Encoding other than chunked");
		head->body = HTTP_BODY_CHUNKED;
	}
	return r;
}

/* Drop what OPTION, of a Connection field, names. */
static int drop_named(struct http_head *head, struct http_piece option, struct error *err)
{
	if (option.size == 0)
		return 0;
	if (!is_token(option))
		return refuse(err, "a Connection field that cannot be read");
	if (is_named(option, "Content-Length") || is_named(option, "Transfer-Encoding") ||
	    is_named(option, "Host"))
		return refuse(err, "a Connection field that names what the framing needs");
	for (size_t i = 0; i < head->field_count; i++)
		if (head->fields[i].name.size == option.size &&
		    strncasecmp(head->fields[i].name.text, option.text, option.size) == 0)
			head->fields[i].dropped = true;
	return 0;
}

static int apply_connection(struct http_head *head, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < head->field_count && r == 0; i++) {
		struct http_piece rest = head->fields[i].value;
		struct http_piece option;

		if (!is_named(head->fields[i].name, "Connection") &&
		    !is_named(head->fields[i].name, "Proxy-Connection"))
			continue;
		while (r == 0 && take_until(&rest, ",", &option))
			r = drop_named(head, trimmed(option), err);
		if (r == 0)
			r = drop_named(head, trimmed(rest), err);
	}
	return r;
}

int httphead_parse(const char *data, size_t size, struct http_head *ret_head, bool *ret_bad_host,
		   struct error *err)
{
	struct http_head *head = ret_head;
	struct http_piece rest = { .text = data, .size = size };
	struct http_piece line;
	int r = 0;

	*ret_bad_host = false;
	head->field_count = 0;
	head->has_host = head->connect = false;
	head->body = HTTP_BODY_NONE;
	head->length = 0;
	head->path = (struct http_piece){ .text = "" };
	if (!take_until(&rest, "\r\n", &line))
		return refuse(err, "no complete head");
	r = parse_request_line(line, head, ret_bad_host, err);
	while (r == 0) {
		if (!take_until(&rest, "\r\n", &line))
			return refuse(err, "no complete head");
		if (line.size == 0)
			break;
		r = parse_field(line, head, err);
	}
	if (r == 0)
		r = apply_connection(head, err);
	if (r < 0)
		return r;
	if (rest.size != 0)
		return refuse(err, "bytes behind the head");
	if (head->connect && head->body != HTTP_BODY_NONE)
		return refuse(err, "a CONNECT with a body");
	if (!head->has_host && head->minor == 1 && !head->connect)
		return refuse(err, "no Host field");
	return 0;
}

int httphead_render_authority(const struct hostname *host, uint16_t port, bool always_port,
			      struct buf *out)
{
	bool bracket = host->address.family == 6;
	int r = buf_printf(out, "%s%s%s", bracket ? "[" : "", host->name, bracket ? "]" : "");

	if (r == 0 && (always_port || port != HTTP_PORT))
		r = buf_printf(out, ":%u", (unsigned)port);
	return r;
}

static void render_target(const struct http_head *head, bool absolute, struct buf *out)
{
	if (absolute) {
		(void)buf_add_string(out, SCHEME);
		(void)httphead_render_authority(&head->host, head->port, false, out);
	}
	if (head->path.size == 0 && head->method.size == 7 &&
	    memcmp(head->method.text, "OPTIONS", 7) == 0)
		(void)buf_add_string(out, absolute ? "" : "*");
	else if (head->path.size == 0 || head->path.text[0] != '/')
		(void)buf_add_byte(out, '/');
	(void)buf_add(out, head->path.text, head->path.size);
}

int httphead_render(const struct http_head *head, bool absolute, struct buf *out)
{
	(void)buf_add(out, head->method.text, head->method.size);
	(void)buf_add_byte(out, ' ');
	render_target(head, absolute, out);
	(void)buf_printf(out, " HTTP/1.%d\r\nHost: ", head->minor);
	(void)httphead_render_authority(&head->host, head->port, false, out);
	for (size_t i = 0; i < head->field_count; i++) {
		const struct http_field *field = &head->fields[i];

		if (field->dropped)
			continue;
		(void)buf_add_string(out, "\r\n");
		(void)buf_add(out, field->name.text, field->name.size);
		(void)buf_add_string(out, ": ");
		(void)buf_add(out, field->value.text, field->value.size);
	}
	(void)buf_add_string(out, "\r\nConnection: close\r\n\r\n");
	return out->failed ? -ERR_NOMEM : 0;
}

int httphead_status(const char *data, size_t size)
{
	int status = 0;

	if (size < 13 || memcmp(data, "HTTP/1.", 7) != 0 || (data[7] != '0' && data[7] != '1') ||
	    data[8] != ' ')
		return 0;
	for (size_t i = 9; i < 12; i++) {
		if (data[i] < '0' || data[i] > '9')
			return 0;
		status = status * 10 + (data[i] - '0');
	}
	if (data[12] != ' ' && data[12] != '\r')
		return 0;
	return status >= 100 && status <= 599 ? status : 0;
}

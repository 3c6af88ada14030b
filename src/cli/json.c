/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/json.c - writes JSON to stdout. Output only and flat, which a library would not make shorter.
 */
#include "cli/json.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

/* Length of the well-formed UTF-8 character at s, or 0. Shortest forms only, no surrogates. */
static size_t utf8_length(const unsigned char *s)
{
	size_t length = s[0] < 0x80		      ? 1
			: s[0] >= 0xc2 && s[0] < 0xe0 ? 2
			: s[0] >= 0xe0 && s[0] < 0xf0 ? 3
			: s[0] >= 0xf0 && s[0] < 0xf5 ? 4
						      : 0;

	/* The terminating zero is no continuation byte, so this never runs past it. */
	for (size_t i = 1; i < length; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
		(s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return length;
}

static void put_string(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	putchar('"');
	while (*s) {
		size_t length = utf8_length(s);

		if (length == 0)
			printf("\\udc%02x", *s++);
		else if (*s == '"' || *s == '\\')
			printf("\\%c", *s++);
		else if (*s < 0x20 || *s == 0x7f)
			printf("\\u%04x", *s++);
		else
			s += fwrite(s, 1, length, stdout) == length ? length : 1;
	}
	putchar('"');
}

static void begin(struct cli_json *json, const char *key)
{
	if (json->comma)
		fputs(", ", stdout);
	json->comma = true;
	if (key) {
		put_string(key);
		fputs(": ", stdout);
	}
}

void cli_json_open(struct cli_json *json, const char *key, char bracket)
{
	begin(json, key);
	putchar(bracket);
	json->comma = false;
}

void cli_json_close(struct cli_json *json, char bracket, bool newline)
{
	putchar(bracket);
	json->comma = true;
	if (newline) {
		putchar('\n');
		json->comma = false;
	}
}

void cli_json_text(struct cli_json *json, const char *key, const char *text)
{
	begin(json, key);
	put_string(text);
}

void cli_json_number(struct cli_json *json, const char *key, uint64_t value)
{
	begin(json, key);
	printf("%" PRIu64, value);
}

void cli_json_id(struct cli_json *json, const char *key, uint64_t value)
{
	begin(json, key);
	printf("\"%" PRIu64 "\"", value);
}

void cli_json_bool(struct cli_json *json, const char *key, bool value)
{
	begin(json, key);
	fputs(value ? "true" : "false", stdout);
}

void cli_json_seconds(struct cli_json *json, const char *key, uint64_t ns)
{
	begin(json, key);
	printf("%" PRIu64 ".%09" PRIu64, ns / 1000000000u, ns % 1000000000u);
}

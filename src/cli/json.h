/* SPDX-License-Identifier: Apache-2.0 */
/* cli/json.h - writes JSON to stdout; the caller opens and closes in pairs. key is NULL in arrays.
 */
#ifndef LAC_CLI_JSON_H
#define LAC_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>

struct cli_json {
	bool comma; /* the next value is not the first one */
};

void cli_json_open(struct cli_json *json, const char *key, char bracket);
/* The newline ends an object of its own line. */
void cli_json_close(struct cli_json *json, char bracket, bool newline);
/* Any bytes: those that are no UTF-8 become \udc80..\udcff, as in Python's surrogateescape. */
void cli_json_text(struct cli_json *json, const char *key, const char *text);
void cli_json_number(struct cli_json *json, const char *key, uint64_t value);
/* As a string, since readers of JSON lose bits of large numbers. */
void cli_json_id(struct cli_json *json, const char *key, uint64_t value);
void cli_json_bool(struct cli_json *json, const char *key, bool value);
/* In seconds with nine places. */
void cli_json_seconds(struct cli_json *json, const char *key, uint64_t ns);

#endif

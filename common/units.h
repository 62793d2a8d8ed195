/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_UNITS_H
#define FSBOX_COMMON_UNITS_H

/* Numbers as people write them, for fsboxd.conf(5) and the command line alike. No locale. */

#include <stdbool.h>
#include <stdint.h>

/*
 * Durations "500ms 20s 5m 1h", sizes "512K 2G" (binary units K M G T, or plain bytes), processors
 * "1.5" in thousandths. False for anything else: signs, blanks, fractions beyond thousandths, what
 * does not fit 64 bits, a duration without unit.
 */
bool parse_duration_ms(const char *text, uint64_t *ret_ms);
bool parse_size_bytes(const char *text, uint64_t *ret_bytes);
bool parse_cpus_milli(const char *text, uint32_t *ret_milli);

/* A plain decimal number from MIN to MAX. */
bool parse_count(const char *text, uint64_t min, uint64_t max, uint64_t *ret_count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_TESTS_TEST_H
#define FSBOX_TESTS_TEST_H

/* What every cmocka test includes: cmocka wants these headers before its own. */

#include <setjmp.h> /* IWYU pragma: keep */
#include <stdarg.h> /* IWYU pragma: keep */
#include <stddef.h> /* IWYU pragma: keep */
#include <stdint.h> /* IWYU pragma: keep */

#include <cmocka.h>

#endif

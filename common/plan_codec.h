/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_PLAN_CODEC_H
#define FSBOX_COMMON_PLAN_CODEC_H

/*
 * The bytes of a plan: plan_encode() and plan_decode() of common/plan.h live here.
 *
 *	"fsbxpln1"  u32 unshare  u32 net  u32 count  text chdir
 *	count times:  u32 kind  u32 flags  i32 rule  text path  text source
 *
 * Numbers are little-endian; a text is a u32 of bytes and the bytes, no bytes meaning no text.
 */

#include "common/plan.h"

#define PLAN_MAGIC "fsbxpln1"

#endif

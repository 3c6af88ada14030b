/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/public.h - LAC_PUBLIC marks the definition of a function that liblacuna exports. All others
 * are hidden by -fvisibility=hidden, so that a forgotten mark fails to link instead of leaking.
 */
#ifndef LAC_BASE_PUBLIC_H
#define LAC_BASE_PUBLIC_H

#define LAC_PUBLIC __attribute__((visibility("default")))

#endif

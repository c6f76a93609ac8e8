// Device code as read-only data. Symbols are hidden: they are nobody's but this library's.
    .section .rodata
    .macro image name
    .balign 64
    .global tributary_fatbin_\name
    .hidden tributary_fatbin_\name
    .type tributary_fatbin_\name, %object
tributary_fatbin_\name:
    .incbin "\name\().fatbin"
    .size tributary_fatbin_\name, . - tributary_fatbin_\name
    .endm

    image reduce_integers
    image reduce_floats
    image convert
    image copy
    image partial

    .section .note.GNU-stack, "", %progbits

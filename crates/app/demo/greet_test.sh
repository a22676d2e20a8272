#!/bin/sh
got=$(sh greet.sh Ada)
if [ "$got" != "Hello, Ada!" ]; then
    echo "expected \"Hello, Ada!\", got \"$got\""
    exit 1
fi
echo "1 test passed"

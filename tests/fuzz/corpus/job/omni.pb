
64 MiB@ @H@*"../data/omni/manifest.jsonl2Ü !ü©ñÒMbP?0R3
picturesencode R
image(0:category@H@PR)
soundsencode R
audio (0@H@PR3
texttrain *pictures*sounds:

pp"
ppb ô(È
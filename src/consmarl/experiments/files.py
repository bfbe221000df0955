from consmarl.files import replacing as replacing
